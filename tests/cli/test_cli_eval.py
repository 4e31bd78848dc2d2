"""``pmt eval``: by class, the confusion matrix, and another model on the same images."""

import json

import pytest
from cli_files import check_golden, write_data, write_model
from networks import residual_network

import pmt
from pmt.cli import main
from pmt.protocol import DataSource, evaluate_model


@pytest.fixture
def in_folder(tmp_path, monkeypatch):
    """A working folder with small.pmt, other.pmt of another input size, and data."""
    monkeypatch.chdir(tmp_path)
    write_model(tmp_path)
    write_data(tmp_path)
    residual_network(size=16, seed=1).save("other.pmt")


@pytest.mark.usefixtures("in_folder")
def test_everything_is_printed(tmp_path, capsys):
    pytest.importorskip("PIL")
    flags = ["--by-class", "--confusion", "--against", "other.pmt"]
    assert main(["eval", "small.pmt", "--data", "data", *flags]) == 0
    check_golden("eval.txt", capsys.readouterr().out.replace(str(tmp_path), "FOLDER"))


@pytest.mark.usefixtures("in_folder")
@pytest.mark.parametrize(
    ("flags", "keys"),
    [
        ([], ["accuracy", "loss", "n"]),
        (["--by-class"], ["accuracy", "loss", "n", "confusion"]),
        (["--confusion"], ["accuracy", "loss", "n", "confusion"]),
        (["--against", "small.pmt"], ["accuracy", "loss", "n", "comparison"]),
    ],
)
def test_json_holds_what_is_asked_for(flags, keys, capsys):
    assert main(["eval", "small.pmt", "--data", "data", *flags, "--json", "-"]) == 0
    assert list(json.loads(capsys.readouterr().out)) == keys


@pytest.mark.usefixtures("in_folder")
def test_the_command_is_one_function(capsys):
    options = ["--against", "fashion_mnist_dscnn", "--confusion", "--limit", "50"]
    assert main(["eval", "fashion_mnist_dscnn", "--data", "bundled", *options, "--json", "-"]) == 0
    model = pmt.load("fashion_mnist_dscnn")
    found = evaluate_model(model, DataSource("bundled"), limit=50, against=model)
    assert json.loads(capsys.readouterr().out) == found.to_json()


@pytest.mark.usefixtures("in_folder")
def test_the_difference_is_model_minus_other():
    source, model, other = DataSource("data"), pmt.load("small.pmt"), residual_network(seed=2)
    found = evaluate_model(model, source, against=other, names=("mine", "start"))
    data = source.load("test", model)
    assert found.comparison.names == ("start", "mine")
    assert found.comparison.a == other.evaluate(data)
    assert found.comparison.b == found.evaluation == model.evaluate(data)


@pytest.mark.usefixtures("in_folder")
def test_another_model_that_is_not_there(capsys):
    assert main(["eval", "small.pmt", "--data", "data", "--against", "none.pmt"]) == 2
    assert capsys.readouterr().err == "pmt: error: --against='none.pmt': there is no such file\n"
