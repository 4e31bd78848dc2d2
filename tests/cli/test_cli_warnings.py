"""Warnings as the program prints them: one line each, on standard error."""

import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pmt
from pmt.cli import main
from pmt.datasets import load, save_npz


@pytest.fixture(autouse=True)
def shown():
    """Warnings are shown, as outside of tests, and no errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        yield


def images_of(folder: Path, count: int = 2) -> None:
    pillow = pytest.importorskip("PIL.Image")
    folder.mkdir(parents=True)
    for number in range(count):
        pillow.new("L", (28, 28), 50 * number).save(folder / f"{number}.png")


def test_a_warning_is_one_line_and_the_command_goes_on(tmp_path, capsys):
    images_of(tmp_path / "cat")
    images_of(tmp_path / "dog")
    assert main(["eval", "fashion_mnist_dscnn", "--data", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith(f"4 test images of {tmp_path}\naccuracy ")
    assert printed.err == (
        f"pmt: warning: data set {tmp_path.name!r} has 2 classes (cat, dog), the model 10: label 0 "
        "of both must be the same class, and so on; give all of the model's classes as "
        "--class-names, or the model a new last layer by --classes=2\n"
    )


def test_a_limit_of_one_class_alone(tmp_path, capsys):
    data = pmt.datasets.bundled("train")
    save_npz(data[data.labels == 2], tmp_path / "some.npz")
    command = ["train", "fashion_mnist_dscnn", "--data", str(tmp_path / "some.npz")]
    options = [
        "--layers",
        "head",
        "--epochs",
        "1",
        "--limit",
        "25",
        "--batch",
        "20",
        "--out",
        str(tmp_path / "run"),
    ]
    assert main([*command, *options]) == 0
    assert capsys.readouterr().err == (
        "pmt: warning: all 25 training images of 'fashion_mnist_train' are of class 2 "
        "('Pullover'), and the model has 10: where files are sorted by class, shuffle before you "
        "cut, data.shuffled(0).take(25)\n"
    )


def test_classes_that_are_sheets_of_images(tmp_path):
    images_of(tmp_path / "cifar10", 3)
    np.savez(tmp_path / "cifar10" / "labels.npz", test=np.zeros(3))
    message = (
        f"{tmp_path / 'cifar10'}: holds labels.npz beside 3 images, as a data set does that is "
        "packed into sheets of many images; all of them are read as images of the class "
        "'cifar10'; unpack them, one folder a class, or move the array away"
    )
    with pytest.warns(UserWarning, match=f"^{re.escape(message)}$"):
        assert len(load(tmp_path)) == 3


def test_classes_without_images(tmp_path, capsys):
    images_of(tmp_path / "dog")
    for name in ("fog/1", "fog/2", "fog/3", "fog/4"):
        (tmp_path / name).mkdir(parents=True)
    assert main(["eval", "fashion_mnist_dscnn", "--data", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"pmt: error: {tmp_path / 'fog'}: the class folder holds no image, but the folders 1, 2, "
        "3, ...; where these are the classes, give fog itself as the data set; where they are "
        "groups of its images, give 'folder' as groups\n"
    )
    (tmp_path / "packed").mkdir()
    np.savez(tmp_path / "packed" / "cars.npz", images=np.zeros(3))
    assert main(["eval", "fashion_mnist_dscnn", "--data", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"pmt: error: {tmp_path}: 2 problems: fog: the class folder holds no image, but the "
        "folders 1, 2, 3, ...; packed: the class folder holds no image, but cars.npz; where these "
        "are the classes, give fog itself as the data set; where they are groups of its images, "
        "give 'folder' as groups; unpack the images, one folder a class\n"
    )


def test_other_classes_than_the_models(tmp_path, capsys):
    names = tuple(f"animal {number}" for number in range(10))
    animals = replace(pmt.datasets.bundled("train").take(40), class_names=names, name="animals")
    save_npz(animals, tmp_path / "animals.npz")
    both = (
        "data set 'animals' has other classes (animal 0, animal 1, animal 2, animal 3 and 6 more) "
        "than the model (T-shirt/top, Trouser, Pullover, Dress and 6 more)"
    )
    same = "give the model's names as --class-names where the classes are the same\n"
    source = ["fashion_mnist_dscnn", "--data", str(tmp_path / "animals.npz")]
    assert main(["eval", *source]) == 0
    assert capsys.readouterr().err == (
        f"pmt: warning: {both}: accuracy on them says nothing; train the model's head for them, "
        f"or {same}"
    )
    short = ["--epochs", "1", "--batch", "20"]
    assert main(["train", *source, "--layers", "B1", *short, "--out", str(tmp_path / "B1")]) == 0
    assert capsys.readouterr().err == (
        f"pmt: warning: {both}, and --layers='B1' leaves its head as it is; add the last layer, or "
        f"{same}"
    )
    assert main(["train", *source, "--layers", "head", *short, "--out", str(tmp_path / "h")]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    note = f"{both}: where its trained head is kept, the model takes their names"
    assert note in printed.out.splitlines()


def test_a_new_head_that_is_not_trained(tmp_path, capsys):
    few = pmt.datasets.bundled("train").take(400)
    five = few.subset(np.flatnonzero(few.labels < 5))
    save_npz(replace(five, class_names=tuple("abcde")), tmp_path / "five.npz")
    command = [
        "train",
        "fashion_mnist_dscnn",
        "--data",
        str(tmp_path / "five.npz"),
        "--classes",
        "5",
    ]
    options = ["--epochs", "1", "--queries", "2", "--threads", "1", "--out"]
    assert main([*command, "--layers", "B2", *options, str(tmp_path / "b2")]) == 0
    assert (
        "pmt: warning: --layers='B2' leaves the last layer 'head', whose weights are all 0, as it "
        "is: every image gets the same scores; add the last layer\n"
    ) in capsys.readouterr().err
    assert main([*command, "--layers", "head", *options, str(tmp_path / "head")]) == 0
    assert "whose weights are all 0" not in capsys.readouterr().err


def test_a_warning_names_the_arguments_as_they_are_typed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    data = (
        "--data bundled --limit 40 --valid-limit 20 --epochs 1 --queries 2 --batch 20 --layers B1"
    )
    command = f"train fashion_mnist_dscnn {data} --no-keep-best --held-out-share 0.3 --out run"
    assert main([*command.split(), "--preparation", "none"]) == 0
    assert capsys.readouterr().err.startswith(
        "pmt: warning: --held-out-share has no effect with --no-keep-best; it has one with "
        "--keep-best\n"
    )


def test_a_run_without_steps_that_got_worse_gets_no_advice_on_its_rate(tmp_path, capsys):
    command = "train fashion_mnist_dscnn --data bundled --method preparation_only --limit 20"
    assert main([*command.split(), "--out", str(tmp_path / "run")]) == 0
    (line,) = (line for line in capsys.readouterr().err.splitlines() if "worse" in line)
    assert line.startswith("pmt: warning: training has made the model worse: accuracy 0.9320 -> ")
    assert line.endswith(" on the 1,000 images that are watched")
