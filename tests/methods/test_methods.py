"""Methods by name: what they are and cost; each of them learns."""

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest
from networks import labels, pixels, residual_network
from toy_trainer import Stop, data, stop_at

import pmt
from pmt import methods
from pmt.baselines.backprop.scheme import UpdateScheme
from pmt.cli import main
from pmt.train.prepare.preparation import Preparation

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def noisy():
    return pmt.corruptions.corrupt(pmt.datasets.bundled("train").take(200), "gaussian_noise", 5)


def test_every_method_is_in_the_documents_and_none_else():
    text = (ROOT / "docs" / "reference" / "methods.md").read_text()
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == list(methods.METHODS)


def test_presets_are_methods():
    for name in pmt.PRESETS:
        assert methods.options_of(name) == pmt.preset(name)


ZEROTH_ORDER = [n for n, m in methods.METHODS.items() if m.kind.name == "zeroth_order"]
# Where the method's own is more than so noisy a gradient stands.
RATES = {"weight_model_wise": 0.002, "mezo": 0.0003}


@pytest.mark.parametrize("name", ZEROTH_ORDER)
def test_every_zeroth_order_method_lowers_the_training_loss(name, noisy):
    model = pmt.load("fashion_mnist_dscnn")
    changes = {"layers": "B2,head"} if name != "last_layer" else {}
    if name in RATES:
        changes["learning_rate"] = RATES[name]
    trainer = methods.trainer(
        name, **changes, epochs=2, batch=50, queries=8, final_learning_rate=1.0, threads=1
    )
    before = model.evaluate(noisy).loss
    trainer.fit(model, noisy, progress=False)
    assert model.evaluate(noisy).loss < before


@pytest.mark.parametrize(
    ("name", "forwards"),
    [
        ("no_adaptation", 0),
        ("default", 2 * 7),
        ("weight_layer_wise", 3 * 7),
        ("weight_model_wise", 7),
        ("node_layer_wise", 2 * 7),
        ("node_model_wise", 7),
        ("bias_only", 2 * 7),
        ("last_layer", 0),
    ],
)
def test_forwards_for_each_image_are_those_of_the_method(name, forwards):
    changes = {} if name == "no_adaptation" else {"queries": 7}
    layers = {} if name == "last_layer" else {"layers": "B2,head"}
    trainer = methods.trainer(name, **layers, **changes)
    assert trainer.cost(pmt.load("fashion_mnist_dscnn"), samples=1).forwards == forwards


def test_no_adaptation_measures_and_leaves_the_model_as_it_is(tmp_path):
    model = residual_network()
    before = model.image()
    valid = data(5, 9)
    result = methods.trainer("no_adaptation", seed=3).fit(
        model, data(12), valid=valid, out=tmp_path / "run", progress=False
    )
    evaluation = model.evaluate(valid)
    assert model.image() == before
    assert result.before == {"valid_loss": evaluation.loss, "valid_accuracy": evaluation.accuracy}
    assert [r["epoch"] for r in result.epochs] == [0]
    assert result.epochs[0]["macs"] == 0
    folder = pmt.RunFolder(tmp_path / "run")
    assert folder.done
    assert folder.trainer() == "no_adaptation"
    assert [r["kind"] for r in folder.read_metrics()] == ["start", "epoch"]
    again = methods.resumed_trainer(folder)
    assert again.options == methods.options_of("no_adaptation", seed=3)
    again.fit(model, data(12), valid=valid, out=tmp_path / "run", progress=False)
    assert [r["kind"] for r in folder.read_metrics()] == ["start", "epoch"]


def test_a_step_of_no_adaptation_measures_what_training_starts_from():
    model = residual_network()
    images, classes = model.prepare(pixels(model, 6)), labels(model, 6)
    before = model.image()
    measured = methods.trainer("no_adaptation").stepper(model, 6).step(images, classes, 0, 0.5)
    assert model.image() == before
    assert measured.pop("changed") == 0
    trained = methods.trainer("paper", batch=6, queries=2).stepper(model, 6)
    step = trained.step(images, classes, 0, 0.5)
    assert measured == {name: step[name] for name in ("loss", "loss_sum", "correct")}


@pytest.mark.filterwarnings("ignore:epochs has no effect")
def test_no_adaptation_takes_no_steps_whatever_it_is_told():
    model = residual_network()
    trainer = methods.trainer("no_adaptation", epochs=3, macs=10**9, batch=400)
    result = trainer.fit(model, data(12), progress=False)
    assert [(r["epoch"], r["changed"], r["forwards"]) for r in result.epochs] == [(0, 0, 0)]
    assert "train_loss" not in result.epochs[0]


def test_a_run_is_resumed_by_its_own_trainer(tmp_path):
    trainer = methods.trainer("bias_only", layers="B3", epochs=1, batch=4, queries=2, threads=1)
    trainer.fit(residual_network(), data(12), out=tmp_path / "run", progress=False)
    resumed = methods.resumed_trainer(pmt.RunFolder(tmp_path / "run"), threads=1)
    assert type(resumed) is pmt.ZOTrainer
    assert resumed.options == trainer.options
    assert resumed.options.train_weights is False


def test_unknown_names_are_refused_with_those_that_are_known():
    with pytest.raises(ValueError, match="method='mezzo' is unknown; did you mean 'mezo'"):
        methods.trainer("mezzo")
    with pytest.raises(ValueError, match="option 'querys' is unknown; did you mean 'queries'"):
        methods.trainer("paper", querys=3)
    with pytest.raises(
        ValueError, match="option 'queries' is unknown; choose one of layers, epochs"
    ):
        methods.trainer("no_adaptation", queries=3)


def test_options_are_plain_values():
    for name in methods.METHODS:
        for value in dataclasses.asdict(methods.options_of(name)).values():
            assert isinstance(value, (str, int, float, bool))


def test_the_command_line_takes_a_method_and_its_options(tmp_path, capsys):
    from cli_files import write_data, write_model

    from pmt.cli import main

    command = ["train", str(write_model(tmp_path)), "--data", str(write_data(tmp_path))]
    command += ["--block", "2", "--queries", "2", "--epochs", "1", "--batch", "20", "--json", "-"]
    run = tmp_path / "run"
    more = ["--method", "pooled", "--set", "head_rate=5", "--set", "train_bias=no"]
    assert main([*command, "--out", str(run), *more]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["options"]["head_rate"] == 5.0
    assert figures["options"]["train_bias"] is False
    assert main(["train", "--resume", str(run), "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["options"] == figures["options"]
    none = tmp_path / "none"
    command = [part for part in command if part not in ("--queries", "2")]
    command.insert(4, "--layers")
    command.insert(5, "all")
    command.remove("--block")
    assert main([*command, "--out", str(none), "--method", "no_adaptation"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["before"] == figures["after"]
    assert figures["macs"] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "mezzo"], "--method='mezzo' is unknown; did you mean 'mezo'?\n"),
        (["--method", "paper", "--preset", "paper"], "--method and --preset exclude each other"),
        (
            ["--preset", "bias_only"],
            "--preset='bias_only' is unknown; choose one of default, paper",
        ),
        (
            ["--set", "diversty=0.5"],
            "--set diversty=0.5: 'diversty' is not an option of default; did you mean 'diversity'?",
        ),
        (
            ["--set", "diversity"],
            "--set diversity: must be OPTION=VALUE, with an option of default",
        ),
        (["--set", "batch=x"], "--set batch=x: 'x' must be a whole number"),
        (["--set", "train_bias=maybe"], "--set train_bias=maybe: 'maybe' must be yes or no"),
    ],
)
def test_the_command_line_names_what_is_wrong(tmp_path, capsys, arguments, message):
    from cli_files import write_data, write_model

    from pmt.cli import main

    command = ["train", str(write_model(tmp_path)), "--data", str(write_data(tmp_path))]
    assert main([*command, "--out", str(tmp_path / "run"), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_weights_of_a_bias_only_method_stay():
    model = residual_network()
    before = model.copy()
    methods.trainer("bias_only", epochs=1, batch=4, queries=3).fit(model, data(12), progress=False)
    for layer in model.layers:
        assert np.array_equal(model.core.weights(layer.index), before.core.weights(layer.index))


def test_the_batch_of_a_method_fits_few_images():
    model, few = pmt.load("fashion_mnist_dscnn"), pmt.datasets.bundled("train").take(14)
    trainer = methods.trainer("mezo", layers="head", epochs=1, queries=2, threads=1)
    trainer.set_params(seed=2)
    with pytest.warns(UserWarning, match="^batch 50, the default, is larger than the 14 training"):
        result = trainer.fit(model, few, progress=False)
    assert len(result.epochs) == 1
    with pytest.raises(ValueError, match="batch=51 is larger than the training set of 14 samples"):
        methods.trainer("mezo", layers="head", batch=51).fit(model, few, progress=False)


STEPS, BATCH = 2, 4
DATA = pmt.datasets.bundled("train").take(STEPS * BATCH)
WATCHED = pmt.datasets.bundled("test").take(8)

every_method = pytest.mark.parametrize("name", methods.METHODS)


def small_model() -> pmt.Model:
    return pmt.load("fashion_mnist_dscnn")


def trainer_of(name: str, **changes):
    """Return a method's trainer for two steps of few images and queries."""
    method, model = methods.METHODS[name], small_model()
    if method.kind.trainer.startswith("pmt.baselines."):
        pytest.importorskip("torch")
    few = {"epochs": 1, "batch": BATCH, "queries": 2, "align_images": BATCH}
    if not method.own_layers:
        few["layers"] = "head" if "deepzero" in name else "B2,head"  # every weight is a query
    if name == "mcutrain":  # the published schemes are for MCUNet
        few["scheme"] = UpdateScheme.whole(model.select_layers("B3"), model).text(model)
    known = methods.options_of(name).__dataclass_fields__
    own = set(method.options) - {"batch"}
    few = {key: value for key, value in few.items() if key in known and key not in own}
    return methods.trainer(name, threads=1, **few, **changes)


def steps_of(name: str) -> int:
    return 0 if name in ("no_adaptation", "preparation_only") else STEPS


def without_times(folder: pmt.RunFolder) -> list[dict]:
    return [{k: v for k, v in r.items() if k != "seconds"} for r in folder.read_metrics()]


@every_method
def test_it_takes_its_steps_and_reports_what_they_cost(name):
    model, trainer = small_model(), trainer_of(name)
    before, cost = model.image(), trainer.cost(model)
    result = trainer.fit(model, DATA, progress=False)
    last = result.epochs[-1]
    prepared = Preparation(trainer.options).cost(model, len(DATA))
    steps = steps_of(name)
    assert (model.image() == before) == (steps == 0 and prepared.macs == 0)
    assert (cost.macs > 0) == (steps > 0)
    assert 0 <= last["forwards"] <= prepared.forwards + steps * cost.forwards
    choice = sum(phase.get("head_choice_macs", 0) for phase in result.phases)
    most = 1.2 * prepared.macs + choice + steps * cost.macs
    assert prepared.macs + choice <= last["macs"] <= most


@every_method
def test_the_same_seed_gives_the_same_bytes_and_an_interrupted_run_goes_on_to_them(name, tmp_path):
    whole, begun = pmt.RunFolder(tmp_path / "whole"), pmt.RunFolder(tmp_path / "begun")
    first, second = small_model(), small_model()
    trainer_of(name).fit(first, DATA, valid=WATCHED, out=whole, progress=False)
    if steps_of(name):
        with pytest.raises(Stop):
            trainer_of(name).fit(second, DATA, valid=WATCHED, out=begun, progress=stop_at(1))
        assert not begun.done
        second, step = begun.load_checkpoint()
        assert step == 1
    else:
        trainer_of(name).fit(second, DATA, valid=WATCHED, out=begun, progress=False)
    again = methods.resumed_trainer(begun, threads=1)
    again.fit(second, DATA, valid=WATCHED, out=begun, progress=False)
    assert begun.checkpoint.read_bytes() == whole.checkpoint.read_bytes()
    assert without_times(begun) == without_times(whole)
    for state in whole.path.glob("*.npz"):
        assert (begun.path / state.name).read_bytes() == state.read_bytes()


@every_method
def test_its_run_folder_names_its_kind_and_holds_its_options(name, tmp_path):
    trainer, folder = trainer_of(name, seed=7), pmt.RunFolder(tmp_path / "run")
    trainer.fit(small_model(), DATA, out=folder, progress=False)
    kind = methods.METHODS[name].kind
    assert folder.trainer() == trainer.name == kind.name
    options, _ = folder.read_config()
    assert type(options) is type(trainer.options) is kind.options_class()
    made_by_the_run = {"chosen": ""} if hasattr(options, "chosen") else {}
    assert options.replace(**made_by_the_run) == trainer.options


@every_method
def test_an_unknown_option_is_refused_by_its_name(name):
    with pytest.raises(
        ValueError, match="option 'nonsense' is unknown; choose one of layers, epochs"
    ):
        methods.trainer(name, nonsense=1)


def test_the_help_of_the_command_line_names_them_all(capsys):
    assert main(["train", "--help"]) == 0
    words = capsys.readouterr().out.replace(",", " ").split()
    assert set(methods.METHODS) <= set(words)
