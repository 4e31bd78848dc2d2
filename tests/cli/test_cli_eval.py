"""``pmt eval``: by class, the confusion matrix, against another model; ``pmt predict``."""

import json

import numpy as np
import pytest
from cli_files import check_golden, write_data, write_model
from networks import residual_network

import pmt
from pmt.cli import main
from pmt.model import predict
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


@pytest.fixture
def pictures(tmp_path, monkeypatch):
    """The working folder: bundled test images as .png files and as one .npz."""
    image = pytest.importorskip("PIL.Image")
    monkeypatch.chdir(tmp_path)
    images = pmt.datasets.bundled("test").images
    (tmp_path / "photos").mkdir()
    for index in range(3):
        image.fromarray(images[index, ..., 0]).save(tmp_path / "photos" / f"{index}.png")
    np.savez(tmp_path / "more.npz", images=images[3:5])
    return ["photos", "more.npz"]


def test_the_table_names_the_most_probable_class(pictures, capsys):
    assert main(["predict", "fashion_mnist_dscnn", *pictures]) == 0
    check_golden("predict.txt", capsys.readouterr().out)


def test_the_table_lists_several_classes(pictures, capsys):
    assert main(["predict", "fashion_mnist_dscnn", *pictures, "--top", "3"]) == 0
    check_golden("predict_top.txt", capsys.readouterr().out)


def test_predict_is_one_function(pictures, capsys):
    assert main(["predict", "fashion_mnist_dscnn", *pictures, "--top", "2", "--json", "-"]) == 0
    found = predict(pmt.load("fashion_mnist_dscnn"), pictures, top=2, threads=1)
    assert json.loads(capsys.readouterr().out) == found.to_json()


def test_names_come_from_another_data_set(tmp_path, capsys):
    model, data = write_model(tmp_path), write_data(tmp_path)
    np.savez(tmp_path / "one.npz", images=pmt.datasets.load(data, split="test").images[:1])
    command = ["predict", str(model), str(tmp_path / "one.npz")]
    label = int(pmt.load(model).predict(np.load(tmp_path / "one.npz")["images"])[0])

    def shown(*options: str) -> str:
        assert main([*command, *options]) == 0
        return capsys.readouterr().out.splitlines()[1].split()[1]

    assert shown() == str(label)
    assert shown("--names-of", str(data)) == ("ant", "bee", "cat", "dog")[label]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("photos --top 11", "--top 11: must be 1 to 10, the number of classes"),
        ("photos --top 0", "argument --top: 0 must be 1..65536; see `pmt predict --help`"),
        ("nowhere", "FILES nowhere: no such file or folder; check the path"),
        ("", "the following arguments are required: FILES; see `pmt predict --help`"),
    ],
)
@pytest.mark.usefixtures("pictures")
def test_bad_input_is_one_line(arguments, message, capsys):
    assert main(["predict", "fashion_mnist_dscnn", *arguments.split()]) == 2
    assert capsys.readouterr().err == f"pmt: error: {message}\n"


@pytest.mark.usefixtures("pictures")
def test_a_model_of_features_says_which_files_it_reads(tmp_path, capsys):
    graph = pmt.load("fashion_mnist_dscnn").to_graph()
    graph.metadata["input"] = "features"
    pmt.Model.from_graph(graph).save(tmp_path / "features.pmt")
    assert main(["predict", "features.pmt", "photos"]) == 2
    assert capsys.readouterr().err == (
        "pmt: error: images are uint8 pixels, but the model was quantized for inputs that are not "
        "pixels; give an array of these, float32 or int8, or an .npz file whose array 'images' is "
        "one\n"
    )
    np.savez("inputs.npz", images=np.load("more.npz")["images"] / np.float32(255))
    assert main(["predict", "features.pmt", "inputs.npz"]) == 0
