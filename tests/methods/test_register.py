"""Methods that a user registers: by name in Python and on the command line."""

import importlib.metadata
import sys
from functools import partial

import numpy as np
import pytest
from cli_files import program, write_data, write_model
from networks import residual_network
from toy_trainer import Stop, data, stop_at

import pmt
from pmt import methods
from pmt.cli import main
from pmt.methods import registry
from pmt.methods.catalog import NoAdaptation
from pmt.train.extension_names import full_name

PLUGIN = """
import numpy as np
import pmt


def signs(engine, images, labels, step):
    gradients = {}
    for layer in engine.layers:
        rng = np.random.default_rng([step, len(layer)])
        moves = rng.choice(np.array([-2, 2], np.int8), (4, *engine.weights(layer).shape))
        losses = engine.losses(images, labels, layer, moves).mean(axis=1)
        gradients[layer] = np.tensordot(losses - losses.mean(), moves, 1)
    return gradients


pmt.methods.register("own_signs", "custom random signs", estimator=signs)
"""
TRAIN = ["--block", "2", "--epochs", "2", "--batch", "10", "--preparation", "none"]


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    """Let each test begin with pmt's own methods, and leave no other."""
    before = [(known, dict(known)) for known in (registry.METHODS, registry.KINDS)]
    monkeypatch.setattr(registry, "_LOADED", set())
    monkeypatch.setenv("PMT_PLUGINS", "")
    yield
    for known, its in before:
        known.clear()
        known.update(its)
    sys.modules.pop("own_method", None)


@pytest.fixture
def plugin(tmp_path):
    path = tmp_path / "own_method.py"
    path.write_text(PLUGIN)
    return path


def still(layer, gradient, learning_rate):
    return np.zeros(gradient.shape, int)


def test_options_alone_are_a_method_whose_runs_anyone_resumes(tmp_path):
    made = methods.register("few", "the paper's, with few queries", preset="paper", queries=3)
    assert methods.METHODS["few"] is made
    trainer = methods.trainer("few", batch=4, epochs=1, layers="B2")
    assert (trainer.options.queries, trainer.options.rule) == (3, "by_dimension")
    assert (trainer.name, type(trainer)) == ("zeroth_order", pmt.ZOTrainer)


def test_an_estimator_or_optimizer_makes_a_kind_of_trainer(tmp_path):
    methods.register("still", "no step at all", optimizer=still, preparation="none")
    trainer = methods.trainer("still", batch=4, epochs=2, layers="B2", queries=2)
    assert trainer.name == "still"
    model = residual_network()
    before = model.image()
    with pytest.raises(Stop):
        trainer.fit(model, data(), out=tmp_path / "run", progress=stop_at(2))
    assert model.image() == before
    text = (tmp_path / "run" / "config.toml").read_text()
    assert '[run]\ntrainer = "still"' in text
    assert f'[extensions]\noptimizer = "{full_name(still)}"' in text
    again = methods.resumed_trainer(pmt.RunFolder(tmp_path / "run"))
    assert again.options == trainer.options
    result = again.fit(residual_network(), data(), out=tmp_path / "run", progress=False)
    assert len(result.epochs) == 2
    methods.register("still", "another", optimizer=partial(still), preparation="none")
    with pytest.raises(ValueError, match="is not the one") as caught:
        methods.resumed_trainer(pmt.RunFolder(tmp_path / "run"))
    assert str(caught.value) == (
        f"{tmp_path / 'run'}: the method 'still' is not the one that began the run; register that "
        f"one, or begin anew in another folder: optimizer: there {full_name(still)}, here "
        f"{full_name(partial(still))} (its parameters or its code differ)"
    )


class Watcher(NoAdaptation):
    name = "watcher"


def test_a_trainer_class_of_a_users_own():
    methods.register("watcher", "measures and does nothing", trainer=Watcher, batch=2)
    made = methods.trainer("watcher", seed=5)
    assert (type(made), made.options.batch, made.options.seed) == (Watcher, 2, 5)


@pytest.mark.parametrize(
    ("text", "name", "more"),
    [
        ("name='Own-1' must be lower-case letters, digits and underscores", "Own-1", {}),
        ("name='mezo' is a method or trainer of pmt; choose another", "mezo", {}),
        ("name='backprop' is a method or trainer of pmt; choose another", "backprop", {}),
        (
            "trainer=Watcher must have the class attribute name = 'other', which run folders hold",
            "other",
            {"trainer": Watcher},
        ),
        (
            "trainer=Watcher goes without estimator, optimizer and preset: they are "
            "pmt.ZOTrainer's",
            "watcher",
            {"trainer": Watcher, "optimizer": still},
        ),
    ],
)
def test_what_cannot_be_registered(text, name, more):
    with pytest.raises(ValueError, match="=") as caught:
        methods.register(name, "nothing", **more)
    assert str(caught.value) == text


def test_a_plugin_trains_and_resumes_from_the_command_line(tmp_path, plugin, monkeypatch):
    model, images = write_model(tmp_path), write_data(tmp_path)
    begin = ["train", str(model), "--data", str(images), *TRAIN]
    named = ["--plugin", str(plugin), "--method", "own_signs"]
    assert main([*begin, "--out", str(tmp_path / "whole"), *named]) == 0
    monkeypatch.setenv("PMT_PLUGINS", "")
    config = (tmp_path / "whole" / "config.toml").read_text()
    assert 'trainer = "own_signs"' in config
    assert 'estimator = "signs ' in config
    resume = program("train", "--resume", tmp_path / "whole")
    _, error = resume.communicate()
    assert resume.returncode == 2
    assert "trainer 'own_signs' is unknown; it may need a newer version of pmt, the module" in error
    resume = program("train", "--resume", tmp_path / "whole", "--plugin", plugin)
    _, error = resume.communicate()
    assert (resume.returncode, error) == (0, "")


def test_help_lists_the_methods_of_plugins(plugin, capsys):
    assert main(["train", f"--plugin={plugin}", "--help"]) == 0
    assert "own_signs" in capsys.readouterr().out


def test_an_unknown_plugin_is_one_line(capsys):
    assert main(["train", "--plugin", "no_such_module", "--method", "own_signs"]) == 2
    assert capsys.readouterr().err == (
        "pmt: error: --plugin='no_such_module': No module named 'no_such_module'; give an "
        "importable module or the path of a .py file\n"
    )


def test_installed_packages_register_by_their_entry_points(tmp_path, plugin, monkeypatch):
    info = tmp_path / "own_method-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-method\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[pmt.methods]\nown = own_method\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert [p.value for p in importlib.metadata.entry_points(group="pmt.methods")] == ["own_method"]
    assert methods.trainer("own_signs").name == "own_signs"


def test_an_entry_point_that_fails_is_left_out_with_a_warning(tmp_path, monkeypatch):
    info = tmp_path / "broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[pmt.methods]\nbroken = no_such_module\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.warns(RuntimeWarning, match="'pmt.methods: broken = no_such_module' is left out"):
        methods.load_plugins()
    methods.load_plugins()  # and not said again
