"""Options, declared once: each goes the whole way and back, and is refused alike everywhere."""

import argparse
import os
import re
from functools import partial
from typing import Any

import numpy as np
import pytest
from networks import residual_network

import pmt
from pmt import _core
from pmt._util.parsing import parse_toml
from pmt.baselines.backprop.options import BackpropOptions
from pmt.baselines.sparse_update.options import MCUTrainOptions, TinyTrainOptions
from pmt.cli import main
from pmt.cli.arguments import add_training_options, training_options
from pmt.train.option_fields import Range, Values, Words, declared_options
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
NOT_IN_SELECT = ("layers", "epochs", "macs", *CHOICE)


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
        ({"batch": 2.0}, "batch=2.0 must be an int (1..1000000)"),
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
        if name in {"select": NOT_IN_SELECT, "export": CHOICE}.get(command, ()):
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
