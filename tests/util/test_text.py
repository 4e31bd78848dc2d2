"""Words of messages: numbers with their nouns, and the remedy for an unknown name."""

import pytest

from pmt._util.text import c_text, counted, did_you_mean, nearest

KNOWN = ("fog", "gaussian_noise", "B2", "bench", "node")


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("fogg", "; did you mean 'fog'?"),
        ("Fog", "; did you mean 'fog'?"),
        ("fgo", "; did you mean 'fog'?"),
        ("haussian_noise", "; did you mean 'gaussian_noise'?"),
        ("model", "; choose one of fog, gaussian_noise, B2, bench, node"),
        ("b2", "; did you mean 'B2'?"),
        ("gaussian", "; did you mean 'gaussian_noise'?"),
        ("teach", "; choose one of fog, gaussian_noise, B2, bench, node"),
        ("gn", "; did you mean 'gaussian_noise'?"),
        ("", "; choose one of fog, gaussian_noise, B2, bench, node"),
    ],
)
def test_a_near_name_or_all_of_them(name, remedy):
    assert did_you_mean(name, KNOWN) == remedy


@pytest.mark.parametrize(
    ("flag", "near"),
    [
        ("--lr", "--learning-rate"),
        ("--hlr", "--head-learning-rate"),
        ("--limit", None),
        ("--labels", None),
        ("--model", None),
        ("--quiet", None),
        ("--output", "--out"),
        ("--layer", "--layers"),
        ("--optim", "--optimizer"),
        ("--epcohs", "--epochs"),
        ("--sp", None),
        ("--query", "--queries"),
        ("--mu", None),
        ("--learningrate", "--learning-rate"),
    ],
)
def test_flags_are_alike_by_their_letters_alone(flag, near):
    known = ["--layers", "--list", "--learning-rate", "--head-learning-rate", "--split", "--out"]
    known += ["--queries", "--mu-node", "--optimizer", "--epochs", "--split-part", "--save-plot"]
    assert nearest(flag, known) == near


def test_nothing_is_near_where_nothing_is_known():
    assert nearest("fog", ()) is None
    assert did_you_mean("fog", ("rain", "hail"), "choose all, or some of") == (
        "; choose all, or some of rain, hail"
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((0, "image"), "0 images"),
        ((1, "image"), "1 image"),
        ((2, "test image"), "2 test images"),
        ((1500, "image"), "1,500 images"),
        ((1, "query", "queries"), "1 query"),
        ((2, "query", "queries"), "2 queries"),
    ],
)
def test_only_one_is_singular(arguments, text):
    assert counted(*arguments) == text


def test_a_literal_of_c_holds_any_name():
    assert c_text("conv1/relu") == '"conv1/relu"'
    assert c_text('a"b\\?') == '"a\\042b\\134\\077"'
    assert c_text("\x1b\n*/") == '"\\134x1b\\134n*/"'
    assert c_text("\N{GRINNING FACE}") == '"\\360\\237\\230\\200"'
