"""An option that was given and does nothing is named, once, with the rules under which it acts."""

import pytest
from cli_files import write_data, write_model

import pmt
from pmt import methods
from pmt.cli import main
from pmt.errors import OptionWarning
from pmt.methods import registry

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
        {"backtrack": False, "keep_best": False},
    ],
)
def test_nothing_is_said_of_options_that_act_or_that_nobody_gave(given):
    pmt.ZOTrainer(**given)
    methods.trainer("mezo", rule="pooled")


def test_a_switch_that_the_preset_has_off_is_named():
    with pytest.warns(
        OptionWarning, match=r"^backtrack has no effect with keep_best=False; it has"
    ):
        pmt.ZOTrainer(preset="paper", backtrack=True)


def test_a_switch_that_is_turned_on_is_named_where_the_preset_has_it_on_too():
    with pytest.warns(
        OptionWarning, match=r"^backtrack has no effect with keep_best=False; it has"
    ):
        pmt.ZOTrainer(keep_best=False, backtrack=True)
    pmt.ZOTrainer(keep_best=False)  # what the preset chose, not the user
    pmt.ZOTrainer(backtrack=True)
    pmt.ZOTrainer(**pmt.ZOTrainer(keep_best=False).get_params())


def still(*_):
    return {}


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
