"""Options, declared once: each goes the whole way, and is refused alike or told as idle."""

import argparse
import dataclasses
import os
import re
import subprocess
import sys
import typing
from functools import partial
from typing import Any

import numpy as np
import pytest
from cli_files import write_data, write_model
from networks import residual_network

import pmt
from pmt import _core, methods
from pmt._util.parsing import parse_toml
from pmt.baselines.backprop.options import BackpropOptions
from pmt.baselines.sparse_update.options import MCUTrainOptions, TinyTrainOptions
from pmt.cli import main
from pmt.cli.arguments import add_training_options, training_options
from pmt.errors import OptionWarning
from pmt.methods import registry
from pmt.train.learner import LearnerPhase, LearnerRole
from pmt.train.learner_setup import AlignedWeights
from pmt.train.option_fields import Range, Values, Words, declared_options
from pmt.train.options import PRESETS, Loss, OptionArguments, Preset
from pmt.train.run.config import RunConfig
from pmt.train.run.folder import RunFolder
from pmt.train.run.keep_best import CHOICE

pytestmark = pytest.mark.usefixtures("wide_terminal")

DECLARED = declared_options(pmt.TrainingOptions)
# Other options that a value beside the default needs.
NEEDS: dict[str, dict[str, Any]] = {
    "mu_weight": {"rule": "weight"},
    "mu_bias": {"rule": "weight"},
    "nodes": {"rule": "node"},
    "sharing": {"rule": "weight"},
    "separate_biases": {"rule": "weight"},
    "node_ratio": {"rule": "by_dimension"},
    "node_dimension": {"rule": "by_dimension"},
    "diversity": {"loss": "entropy"},
}
# `pmt select` decides these itself.
NOT_IN_EXPORT = ("cross_fit", *CHOICE)
NOT_IN_SELECT = ("layers", "epochs", "macs", *NOT_IN_EXPORT)


def another(values: Values, default: Any) -> Any:
    """A value that is not the default."""
    if isinstance(values, Words):
        return next(word for word in values.words if word != default)
    if isinstance(values, Range):
        if isinstance(default, int):
            return default + 2
        return 0.625
    return "B2" if isinstance(default, str) else not default


def outside(values: Values) -> list[Any]:
    """Values that must be refused."""
    if isinstance(values, Words):
        return ["no such word"]
    if isinstance(values, Range):
        low, high = values.low, values.high
        if isinstance(low, int):
            return [int(low) - 1, *([int(high) + 1] if high != float("inf") else [])]
        beyond = [low if values.low_open else low - 0.5]
        return [*beyond, *([high if values.high_open else 2 * high] if high < 1e6 else [])]
    return []


def read_command_line(*arguments: str) -> pmt.TrainingOptions:
    parser = argparse.ArgumentParser()
    parser.add_argument("--layers")
    add_training_options(parser)
    return training_options(parser.parse_args(arguments))


def flag(name: str, value: Any) -> list[str]:
    dashed = name.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{dashed}" if value else f"--no-{dashed}"]
    return [f"--{dashed}={value}"]


def _toml(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


def create_run(folder: RunFolder, options: pmt.TrainingOptions) -> None:
    folder.create(residual_network(), RunConfig(options, {"model": "m"}))


@pytest.mark.parametrize("name", DECLARED)
def test_an_option_goes_the_whole_way_and_back(name, tmp_path):
    option = DECLARED[name]
    value = another(option.values, option.default)
    wanted = {**NEEDS.get(name, {}), name: value}
    options = pmt.TrainingOptions(**wanted)
    assert value != option.default
    # command line
    given = [word for one, chosen in wanted.items() for word in flag(one, chosen)]
    assert read_command_line(*given) == options
    # config.toml
    folder = RunFolder(tmp_path / "run")
    create_run(folder, options)
    assert folder.read_config()[0] == options
    # core and card
    if name in _core.option_values():
        core, default = options.to_core(), pmt.TrainingOptions(**NEEDS.get(name, {})).to_core()
        back = type(option.default)(getattr(core, name))
        assert back == (pytest.approx(value, rel=1e-7) if isinstance(value, float) else value)
        assert core.pack() != default.pack()


def test_the_core_has_no_option_of_its_own():
    assert set(_core.option_values()) <= set(DECLARED)
    assert len(_core.Options().pack()) == 4 * len(_core.option_values())


REFUSED = [(name, value) for name in DECLARED for value in outside(DECLARED[name].values)]


@pytest.mark.parametrize(("name", "value"), REFUSED)
def test_a_value_outside_is_refused_alike_at_every_entrance(name, value, tmp_path):
    with pytest.raises(ValueError, match=f"^{name}=") as refused:
        pmt.TrainingOptions(**{name: value})
    message = str(refused.value)
    pattern = re.escape(message)
    with pytest.raises(ValueError, match=f"^{pattern}$"):
        pmt.preset("default", **{name: value})
    with pytest.raises(ValueError, match=f"^{pattern}$"):
        pmt.TrainingOptions().replace(**{name: value})
    with pytest.raises(ValueError, match=f"^{pattern}$"):
        read_command_line(*flag(name, value))
    folder = RunFolder(tmp_path / "run")
    create_run(folder, pmt.TrainingOptions())
    config = folder.path / "config.toml"
    lines = [
        f"{name} = {_toml(value)}" if line.startswith(f"{name} = ") else line
        for line in config.read_text().splitlines()
    ]
    config.write_text("\n".join(lines) + "\n")
    with pytest.raises(ValueError, match=f"{pattern}; the run cannot be resumed"):
        folder.read_config()


@pytest.mark.parametrize("rate", [1e39, 1e300, 10**400])
def test_a_learning_rate_that_no_float32_holds(rate):
    message = f"learning_rate={rate!r} must be at most 3.4e+38, the largest float32"
    for made in (
        pmt.TrainingOptions,
        pmt.ZOTrainer,
        pmt.backprop.BackpropTrainer,
        partial(pmt.methods.trainer, "deepzero"),
        partial(pmt.methods.trainer, "mezo"),
        partial(pmt.methods.trainer, "mcutrain"),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            made(learning_rate=rate)
    assert pmt.TrainingOptions(learning_rate=3.4e38).learning_rate == 3.4e38


def test_messages_by_their_words():
    for change, message in (
        ({"queries": 5000, "baseline": "clean"}, "queries=5000 must be 1..4096"),
        ({"queries": 1}, "queries=1 must be 2..4096 (leave-one-out compares two)"),
        ({"mu_weight": 0}, "mu_weight=0 must be 1..64"),
        (
            {"train_weights": False, "train_bias": False},
            "train_weights=False and train_bias=False train nothing; train one of them",
        ),
        ({"seed": 0, "generator": "xorshift32"}, "seed=0 must be 1..4294967295"),
        ({"node_ratio": float("inf")}, "node_ratio=inf must be a finite number > 0"),
        ({"node_ratio": 1e39}, "node_ratio=1e+39 must be at most 3.4e+38, the largest float32"),
        ({"bias_rate": 0.0}, "bias_rate=0.0 must be above 0, at most 1000"),
        ({"macs": -1}, "macs=-1 must be 0..1000000000000000000 (0 is not a budget)"),
        ({"step": "long"}, "step='long' is unknown; choose one of gradient, normalized"),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            pmt.TrainingOptions(**change)
    for change, message in (
        ({"batch": 2.0}, "batch=2.0 must be an int (1..1000000); give 2"),
        ({"batch": 2.5}, "batch=2.5 must be an int (1..1000000)"),
        ({"batch": "2"}, "batch='2' must be an int (1..1000000), not text"),
        ({"learning_rate": "0.1"}, "learning_rate='0.1' must be a number (a finite number > 0), "
         "not text"),
        ({"learning_rate": None}, "learning_rate=None must be a number (a finite number > 0)"),
        ({"diversity": "much"}, "diversity='much' must be a number (0..10), not text"),
        ({"train_bias": "no"}, "train_bias='no' must be True or False"),
        ({"layers": ["B2"]}, "layers=['B2'] must be text: names of blocks or layers, separated by "
         "commas, for example B2,head"),
    ):  # fmt: skip
        for made in (pmt.TrainingOptions, pmt.ZOTrainer):
            with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
                made(**change)
    for change, message in (
        ({"bathc": 3}, "option 'bathc' is unknown; did you mean 'batch'"),
        ({"preset": "papper"}, "preset='papper' is unknown; did you mean 'paper'"),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            pmt.ZOTrainer(**change)


def test_numbers_of_numpy_are_kept_as_those_of_python():
    options = pmt.TrainingOptions(
        queries=np.int64(4),
        seed=np.uint32(3),
        learning_rate=np.float64(0.25),
        diversity=np.float32(0.5),
        loss="entropy",
        train_bias=np.bool_(False),
    )
    plain = pmt.TrainingOptions(
        queries=4, seed=3, learning_rate=0.25, diversity=0.5, loss="entropy", train_bias=False
    )
    assert options == plain
    assert repr(options) == repr(plain)
    assert pmt.ZOTrainer(options, threads=np.int16(2)).threads == 2
    assert options.to_core().queries == 4


def test_a_source_keeps_numbers_of_numpy_as_those_of_python():
    options = pmt.TrainingOptions()
    config = RunConfig(options, {"limit": np.int64(5), "corruption": "fog"})
    assert config == RunConfig(options, {"limit": 5, "corruption": "fog"})
    assert "limit = 5\n" in config.to_toml()
    assert config.differences(RunConfig(options, {"limit": 5, "corruption": "fog"})) == []


def test_any_path_is_read_back(tmp_path):
    config = RunConfig(pmt.TrainingOptions(), {"model": "a\U0001f600\x7f\u2028.pmt"})
    folder = RunFolder(tmp_path / "run")
    folder.create(residual_network(), config)
    assert folder.config() == config
    assert parse_toml((folder.path / "config.toml").read_bytes(), "x")["source"] == config.source


def test_a_path_that_is_not_utf8_begins_no_run(tmp_path):
    source = {"model": os.fsdecode(b"caf\xe9.pmt")}
    folder = RunFolder(tmp_path / "run")
    with pytest.raises(ValueError, match=r"^model='caf\\udce9.pmt' is not UTF-8 text; rename"):
        folder.create(residual_network(), RunConfig(pmt.TrainingOptions(), source))
    assert not folder.path.exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"threads": "2"}, "threads='2' must be an integer"),
        ({"threads": 2.5}, "threads=2.5 must be an integer"),
        ({"options": {"queries": 4}},
         "options is dict: must be pmt.TrainingOptions; options by name are given as they are, "
         "for example ZOTrainer(queries=4), and a preset as preset='paper'"),
    ],
)  # fmt: skip
def test_arguments_of_a_trainer_of_a_wrong_kind(given, message):
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        pmt.ZOTrainer(**given)


@pytest.mark.parametrize("kind", [BackpropOptions, MCUTrainOptions, TinyTrainOptions])
def test_options_of_other_trainers_are_refused_by_their_declarations(kind):
    for name, option in declared_options(kind).items():
        for value in outside(option.values):
            with pytest.raises(ValueError, match=f"^{name}="):
                kind(**{name: value})


@pytest.mark.parametrize(
    ("preset", "change", "message"),
    [
        ("default", {"node_ratio": 0.0}, "an option has a value outside its range (node_ratio)"),
        ("default", {"queries": 0}, "queries must be 1..4096, at least 2 with leave-one-out"),
        ("paper", {"seed": 0}, "XORShift32 needs a seed other than 0"),
        ("default", {"diversity": -1.0}, "an option has a value outside its range (diversity)"),
        (
            "default",
            {"train_weights": 0, "train_bias": 0},
            "neither weights nor biases are trained",
        ),
    ],
)
def test_the_core_checks_options_itself(preset, change, message):
    options = pmt.preset(preset).to_core()
    for name, value in change.items():
        setattr(options, name, value)
    with pytest.raises(ValueError, match=re.escape(message)):
        _core.Trainer(residual_network().core, options, [0], 1)
    with pytest.raises(ValueError, match=r"^'up' is unknown; choose one of nearest, stochastic$"):
        options.rounding = "up"


@pytest.mark.parametrize("command", ["train", "select", "export"])
def test_help_shows_every_declaration(command, capsys):
    assert main([command, "--help-all"]) == 0
    shown = re.sub(r"\s+", "", capsys.readouterr().out)  # lines break at hyphens, too
    for name, option in DECLARED.items():
        if name in {"select": NOT_IN_SELECT, "export": NOT_IN_EXPORT}.get(command, ()):
            continue
        text = option.described(lambda other: f"--{other.replace('_', '-')}")
        values = option.values.shown(option.metavar)
        whole = f"{text} ({values + '; ' if values else ''}default: "
        assert whole.replace(" ", "") in shown, name


def test_docstrings_hold_every_declaration():
    text = pmt.TrainingOptions.__doc__ or ""
    assert "    queries : int, 1..4096\n        Perturbed forwards for each image" in text
    assert '    rounding : {"nearest", "stochastic"}\n' in text
    for name in DECLARED:
        assert f"\n    {name} : " in text
    own = TinyTrainOptions.__doc__ or ""
    assert "    memory : int, 0 or more\n" in own
    assert "epochs" not in own


_PROGRAM = """
import pmt

pmt.ZOTrainer(layers="head", epochs=4, learning_rate=0.1)
pmt.ZOTrainer(loss=lambda logits, labels: logits.sum(axis=2))
pmt.preset("paper", queries=10)
pmt.ZOTrainer(lerning_rate=0.1)
pmt.ZOTrainer(epochs="four")
pmt.preset("default", rule=3)
pmt.preset("papr")
pmt.ZOTrainer(loss="mse")
pmt.TrainingOptions(preparation="aligned")
pmt.datasets.bundled("tst")
pmt.quantise
"""


def test_keyword_arguments_are_the_options():
    fields = {field.name: field.type for field in dataclasses.fields(pmt.TrainingOptions)}
    found = {name: type_.__forward_arg__ for name, type_ in OptionArguments.__annotations__.items()}
    assert found.pop("loss") == "Loss | LossFunction"
    assert fields.pop("loss") == "str"  # also the name of a callable
    assert found == fields


def test_types_have_the_words_of_their_options():
    hints = {**typing.get_type_hints(pmt.TrainingOptions), "loss": Loss}
    words = {
        name: one.values.words
        for name, one in declared_options(pmt.TrainingOptions).items()
        if isinstance(one.values, Words)
    }
    assert len(words) == 14
    assert {name: typing.get_args(hints[name]) for name in words} == words
    assert typing.get_args(Preset) == tuple(PRESETS)
    assert typing.get_args(LearnerRole) == _core.LEARNER_ROLES
    assert typing.get_args(AlignedWeights) == _core.ALIGNED_WEIGHTS
    assert typing.get_args(LearnerPhase) == _core.LEARNER_PHASES


def test_mypy_finds_wrong_names_and_types(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), str(program)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    lines = [line.partition(": ")[0] for line in done.stdout.splitlines() if ": error: " in line]
    assert lines == [f"program.py:{number}" for number in range(7, 15)], done.stdout


WEIGHTS = "rule='weight' or 'by_dimension'"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mu_weight": 8},
         f"mu_weight has no effect with rule='pooled'; it has one with {WEIGHTS}"),
        ({"sharing": "batch"},
         f"sharing has no effect with rule='pooled'; it has one with {WEIGHTS}"),
        ({"sharing": "batch", "rule": "node"},
         f"sharing has no effect with rule='node'; it has one with {WEIGHTS}"),
        ({"node_ratio": 2.0},
         "node_ratio has no effect with rule='pooled'; it has one with rule='by_dimension'"),
        ({"node_dimension": "input", "rule": "weight"},
         "node_dimension has no effect with rule='weight'; it has one with rule='by_dimension'"),
        ({"mu_node": 8, "rule": "weight"},
         "mu_node has no effect with rule='weight'; it has one with "
         "rule='node', 'by_dimension' or 'pooled'"),
        ({"nodes": "all"},
         "nodes has no effect with rule='pooled'; it has one with rule='node' or 'by_dimension'"),
        ({"separate_biases": True},
         f"separate_biases has no effect with rule='pooled'; it has one with {WEIGHTS}"),
        ({"diversity": 1.0, "loss": "squared_error"},
         "diversity has no effect with loss='squared_error'; it has one with loss='entropy'"),
        ({"bias_rate": 2.0, "train_bias": False},
         "bias_rate has no effect with train_bias=False; it has one with train_bias=True"),
        ({"held_out_share": 0.3, "keep_best": False},
         "held_out_share has no effect with keep_best=False; it has one with keep_best=True"),
        ({"macs": 2 * 10**9, "epochs": 3},
         "epochs has no effect with macs=2000000000; it has one with macs=0"),
    ],
)  # fmt: skip
def test_an_option_without_effect_is_named(given, message):
    for make in (pmt.ZOTrainer, lambda **given: methods.trainer("default", **given)):
        with pytest.warns(OptionWarning) as caught:
            make(**given)
        assert [str(warning.message) for warning in caught] == [message]
        assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"mu_weight": 4, "sharing": "per_sample"},  # as the preset has them
        {"mu_weight": 8, "rule": "weight"},
        {"node_ratio": 2.0, "rule": "by_dimension"},
        {"diversity": 1.0, "loss": "entropy"},
        {"preset": "paper", "node_ratio": 2.0, "mu_weight": 2},
        {"preset": "paper", "rule": "pooled"},  # what the preset chose, not the user
        {"mu_node": 8},
    ],
)
def test_nothing_is_said_of_options_that_act_or_that_nobody_gave(given):
    pmt.ZOTrainer(**given)
    methods.trainer("mezo", rule="pooled")


def test_a_switch_that_the_preset_has_off_is_named():
    with pytest.warns(OptionWarning, match=r"^separate_biases has no effect with rule='pooled';"):
        pmt.ZOTrainer(separate_biases=True)


def still(*_):
    return {}


def test_a_switch_that_is_turned_on_is_named_where_it_is_on_anyway():
    with pytest.warns(OptionWarning, match=r"^quantization_aware_scaling has no effect with an"):
        pmt.ZOTrainer(optimizer=still, quantization_aware_scaling=True)
    pmt.ZOTrainer(**pmt.ZOTrainer(optimizer=still).get_params())  # nobody asked


ESTIMATOR = "has no effect with an estimator of your own"
OPTIMIZER = "has no effect with an optimizer of your own"


@pytest.mark.parametrize(
    ("given", "own", "messages"),
    [
        ({"rule": "weight", "mu_weight": 8}, ["estimator"],
         [f"rule {ESTIMATOR}", f"mu_weight {ESTIMATOR}"]),
        ({"queries": 2, "head_rate": 1.0, "rounding": "nearest"}, ["estimator"],
         [f"queries {ESTIMATOR}", f"head_rate {ESTIMATOR}"]),
        ({"head_rate": 1.0, "gradient_norm_scaling": "queries", "queries": 2}, ["optimizer"],
         [f"head_rate {OPTIMIZER}", f"gradient_norm_scaling {OPTIMIZER}"]),
        ({"bias_rate": 2.0, "step": "gradient"}, ["optimizer"],
         [f"bias_rate {OPTIMIZER}, but where it returns None",
          f"step {OPTIMIZER}, but where it returns None"]),
        ({"quantization_aware_scaling": False, "rounding": "nearest", "queries": 2},
         ["estimator", "optimizer"],
         [f"quantization_aware_scaling {OPTIMIZER}, but where it returns None",
          f"rounding {OPTIMIZER}, but where it returns None", f"queries {ESTIMATOR}"]),
    ],
)  # fmt: skip
def test_an_option_that_an_extension_does_not_read_is_named(given, own, messages, monkeypatch):
    for known in (registry.METHODS, registry.KINDS):
        monkeypatch.setitem(known, "own_still", None)  # gone at the end of the test
    extensions = dict.fromkeys(own, still)
    methods.register("own_still", "no step", **extensions)
    for make in (
        lambda: pmt.ZOTrainer(**extensions, **given),
        lambda: methods.trainer("own_still", **given),
    ):
        with pytest.warns(OptionWarning) as caught:
            make()
        assert [str(warning.message) for warning in caught] == messages
        assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.parametrize("command", ["train", "select"])
def test_the_command_says_it_in_one_line(command, tmp_path, capsys):
    model, data = write_model(tmp_path), write_data(tmp_path)
    arguments = [command, str(model), "--data", str(data), "--out", str(tmp_path / "run")]
    arguments += ["--epochs", "1", "--queries", "2", "--batch", "5"]
    if command == "select":
        arguments += ["--blocks", "B1,B2", "--held-out", "20"]
    assert main([*arguments, "--mu-weight", "8", "--sharing", "batch"]) == 0
    assert capsys.readouterr().err == (
        "pmt: warning: --mu-weight has no effect with --rule='pooled'; it has one with "
        "--rule='weight' or 'by_dimension'\n"
        "pmt: warning: --sharing has no effect with --rule='pooled'; it has one with "
        "--rule='weight' or 'by_dimension'\n"
    )
