"""Words of messages, the remedy for an unknown name, and numbers as arguments."""

import numpy as np
import pytest

import pmt
from pmt import datasets
from pmt._util.checks import checked_flag, checked_integer, plain_number
from pmt._util.text import c_text, counted, did_you_mean, nearest
from pmt.train.choose import select

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


MODEL = pmt.load("fashion_mnist_dscnn")
DATA = datasets.bundled("train").take(40)

# A call with one number, and a number that it takes.
CALLS = {
    "epochs": (lambda n: pmt.TrainingOptions(epochs=n), 2),
    "learning_rate": (lambda n: pmt.TrainingOptions(learning_rate=n), 0.5),
    "held_out_share": (lambda n: pmt.TrainingOptions(held_out_share=n), 0.25),
    "keep_best": (lambda n: pmt.TrainingOptions(keep_best=n), True),
    "threads": (lambda n: MODEL.predict(DATA.images[:2], threads=n), 1),
    "top": (lambda n: MODEL.predict(DATA.images[:2], top=n), 2),
    "bias": (lambda n: MODEL.bias(n), 0),
    "layers": (lambda n: MODEL.select_layers(n), 0),
    "features": (lambda n: MODEL.features(n).output_shape, 1),
    "take": (lambda n: DATA.take(n).images, 3),
    "index": (lambda n: DATA[n], 3),
    "severity": (lambda n: pmt.corruptions.corrupt(DATA.images[:2], "fog", n), 2),
    "size": (lambda n: datasets.Dataset.resize(DATA[:2], n, n).images, 8),
    "samples": (lambda n: pmt.ZOTrainer().cost(MODEL, samples=n), 9),
    "flag": (lambda n: checked_flag("flag", n), True),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("form", [np.array, lambda n: np.array(n)[()]], ids=["array", "scalar"])
def test_a_number_of_numpy_counts_as_the_number_that_it_holds(name, form):
    call, number = CALLS[name]
    assert str(call(form(number))) == str(call(number))


def test_an_export_takes_numbers_of_numpy(tmp_path):
    numbers = {"steps": 2, "batch": 2, "save_interval": 1, "inferences": 1}
    for place, form in (("a", int), ("b", np.int64), ("c", np.array)):
        given = {name: form(number) for name, number in numbers.items()}
        pmt.export(MODEL, target="generic", out=tmp_path / place, dataset=DATA, **given)
    cards = [(tmp_path / place / "card.img").read_bytes() for place in "abc"]
    assert cards[0] == cards[1] == cards[2]


def test_what_holds_no_number_or_several_stays_as_it_is():
    for value in (np.arange(2), "3", None, np.ma.masked, [3]):
        assert plain_number(value) is value
    assert checked_flag("on", np.array(True)) is True
    for value in (np.arange(2), np.array(2.5), np.array(True)):
        with pytest.raises(TypeError, match=r"^n=.* must be an integer$"):
            checked_integer("n", value)
    with pytest.raises(TypeError, match=r"^n is a masked array"):
        checked_integer("n", np.ma.masked)


@pytest.mark.parametrize("huge", [10**30, -(10**30), 2**63, 2**64])
@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("seeds", lambda n: select(MODEL, DATA, DATA, seeds=n)),
        ("epochs", lambda n: pmt.TrainingOptions(epochs=n)),
        ("seed", lambda n: pmt.TrainingOptions(seed=n)),
        ("threads", lambda n: MODEL.evaluate(DATA, threads=n)),
        ("top", lambda n: MODEL.predict(DATA.images, top=n)),
        ("samples", lambda n: pmt.Learner(MODEL, samples=n)),
        ("steps", lambda n: pmt.Learner(MODEL).run(steps=n)),
        ("milliseconds", lambda n: pmt.Learner(MODEL).run(milliseconds=n)),
        ("classes", lambda n: pmt.load("fashion_mnist_dscnn", classes=n)),
        ("steps", lambda n: pmt.export(MODEL, target="generic", out="o", dataset=DATA, steps=n)),
        ("ram", lambda n: pmt.export_learner(MODEL, target="qemu-mps2-an500", out="o", ram=n)),
        ("flash", lambda n: pmt.export_learner(MODEL, target="qemu-mps2-an500", out="o", flash=n)),
        ("stack", lambda n: pmt.export(MODEL, target="generic", out="o", dataset=DATA, stack=n)),
        ("size", lambda n: datasets.Dataset.resize(DATA, n, n)),
        ("severity", lambda n: pmt.corruptions.corrupt(DATA.images, "fog", n)),
        ("n", lambda n: DATA.take(n)),
    ],
)
def test_a_huge_number_is_out_of_range(argument, call, huge, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=rf"\b{argument}\b.*(must be|choose one of|at most)"):
        call(huge)
