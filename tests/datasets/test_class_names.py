"""Classes matched by name: a data set in another order than the model is read as the model is."""

from dataclasses import replace

import numpy as np
import pytest

import pmt
from pmt.cli import main
from pmt.datasets import Dataset, save_npz
from pmt.datasets.class_names import in_order_of
from pmt.protocol import DataSource

TRAIN, TEST = pmt.datasets.bundled("train"), pmt.datasets.bundled("test")
CLOTHES = pmt.load("fashion_mnist_dscnn").class_names


def in_alphabetical_order(data: Dataset, spelled=str) -> Dataset:
    """Number the classes as a folder of images has them."""
    order = np.argsort(data.class_names)
    labels = np.argsort(order)[data.labels]
    names = tuple(spelled(data.class_names[place]) for place in order)
    return Dataset(data.images, labels, names, data.name)


def as_folder(name: str) -> str:
    return name.replace("/", "_").lower()


@pytest.mark.parametrize(
    ("own", "names", "labels"),
    [
        (("ANKLE BOOT", "bag"), ("Bag", "Ankle boot"), [1, 0]),
        (("0_ankle-boot", "1_bag"), ("Bag", "Ankle boot"), [1, 0]),
        (("0_bag", "1_ankle-boot"), ("Bag", "Ankle boot"), [0, 1]),
        (("T-shirt_top", "Bag"), ("Coat", "Bag", "T-shirt/top"), [2, 1]),
        # Names that nothing but a number or a symbol keeps apart.
        (("2 Euro", "1 Euro"), ("1 Euro", "2 Euro"), [1, 0]),
        (("C++", "C#"), ("C#", "C++"), [1, 0]),
    ],
)
def test_labels_are_counted_as_the_model_does(own, names, labels):
    data = Dataset(TRAIN.images[:2], np.arange(2), own, "mine")
    found = in_order_of(data, names)
    assert found.labels.tolist() == labels
    assert found.class_names == names


@pytest.mark.parametrize(
    ("own", "names"),
    [
        (("Sock", "Bag"), ("Bag", "Ankle boot")),
        (("0", "1"), ("Bag", "Ankle boot")),
        (("Bag", "Boot"), ("0", "1")),
        (("Bag", "Boot"), None),
    ],
)
def test_other_classes_and_numbers_stay_as_they_are(own, names):
    data = Dataset(TRAIN.images[:2], np.arange(2), own, "mine")
    assert in_order_of(data, names) is data


def test_evaluation_and_predictions_do_not_depend_on_the_order():
    model = pmt.load("fashion_mnist_dscnn")
    data, other = TEST.take(200), in_alphabetical_order(TEST.take(200), as_folder)
    assert model.evaluate(other) == model.evaluate(data)
    assert (model.score_images(other).correct == model.score_images(data).correct).all()
    assert (model.confusion(other).matrix == model.confusion(data).matrix).all()
    assert model.confusion(other).class_names == CLOTHES


def test_training_does_not_depend_on_the_order():
    trainer = pmt.ZOTrainer(layers="B2,head", epochs=1, queries=2, batch=20)
    models = []
    for order in (lambda data: data, lambda data: in_alphabetical_order(data, as_folder)):
        model = pmt.load("fashion_mnist_dscnn")
        result = trainer.fit(
            model, order(TRAIN.take(100)), valid=order(TEST.take(50)), progress=False
        )
        models.append((model.image(), result.after["valid_loss"]))
        assert model.class_names == CLOTHES
    assert models[0] == models[1]


def test_a_few_of_the_classes_are_matched_too():
    few = TEST[np.isin(TEST.labels, (8, 9))]
    own = replace(few, labels=(few.labels == 8).astype(np.int64), class_names=("ankle-boot", "bag"))
    model = pmt.load("fashion_mnist_dscnn")
    assert model.evaluate(own) == model.evaluate(few)


@pytest.fixture
def folder(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for number, (pixels, label) in enumerate(TEST.take(60)):
        place = tmp_path / "clothes" / as_folder(TEST.class_names[label])
        place.mkdir(parents=True, exist_ok=True)
        image.fromarray(pixels[:, :, 0]).save(place / f"{number}.png")
    return tmp_path / "clothes"


def test_the_command_line_reads_a_folder_by_its_names(folder, capsys):
    assert main(["eval", "fashion_mnist_dscnn", "--data", str(folder)]) == 0
    expected = pmt.load("fashion_mnist_dscnn").evaluate(TEST.take(60))
    assert f"accuracy {expected.accuracy:.4f}" in capsys.readouterr().out


def test_names_are_given_on_the_command_line(tmp_path, capsys):
    data = TEST.take(60)
    np.savez(tmp_path / "own.npz", images=data.images, labels=(data.labels + 1) % 10)
    names = ",".join((CLOTHES[-1], *CLOTHES[:-1]))
    command = ["eval", "fashion_mnist_dscnn", "--data", str(tmp_path / "own.npz")]
    assert main([*command, "--class-names", names]) == 0
    expected = pmt.load("fashion_mnist_dscnn").evaluate(data)
    assert f"accuracy {expected.accuracy:.4f}" in capsys.readouterr().out


def test_a_folder_takes_names_that_it_cannot_have(folder):
    data = pmt.datasets.load(folder, class_names=CLOTHES)
    assert data.class_names == CLOTHES
    assert pmt.load("fashion_mnist_dscnn").evaluate(data).accuracy > 0.8


def test_the_bundled_images_take_names_too(capsys):
    names = ",".join((CLOTHES[-1], *CLOTHES[:-1]))
    command = ["eval", "fashion_mnist_dscnn", "--data", "bundled", "--limit", "60"]
    assert main([*command, "--class-names", names]) == 0
    turned = replace(TEST, class_names=(CLOTHES[-1], *CLOTHES[:-1]))
    source = DataSource("bundled", class_names=names)
    model = pmt.load("fashion_mnist_dscnn")
    assert model.evaluate(source.load("test", model)) == model.evaluate(turned)
    expected = model.evaluate(source.load("test", model, limit=60))
    assert f"accuracy {expected.accuracy:.4f}" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["eval", "statistics", "train", "align", "select"])
@pytest.mark.parametrize(
    ("names", "problem"),
    [
        ("a,b", "gives 2 names for the 10 classes of the bundled images: give one name a class"),
        ("a,b,c,d,e,f,g,h,i,j,k", "gives 11 names for the 10 classes of the bundled images"),
        ("a,a,c,d,e,f,g,h,i,j", "holds 'a' twice or blank: names must differ; give each class"),
        ("", "holds '' twice or blank"),
    ],
)
def test_names_that_cannot_be_are_refused(command, names, problem, tmp_path, capsys):
    out = [] if command in ("eval", "select") else ["--out", str(tmp_path / "out.pmt")]
    data = ["--data", "bundled", "--class-names", names]
    assert main([command, "fashion_mnist_dscnn", *data, *out]) == 2
    assert f"pmt: error: --class-names {problem}" in capsys.readouterr().err


def test_more_names_than_a_file_has_classes(tmp_path, capsys):
    few, file = TEST.subset(range(20)), tmp_path / "own.npz"
    save_npz(few, file)
    spare = ",".join((*CLOTHES, "Sock", "Belt"))
    command = ["eval", "fashion_mnist_dscnn", "--data", str(file), "--class-names", spare]
    assert main(command) == 2
    assert capsys.readouterr().err == (
        f"pmt: error: --class-names gives 12 names for the 10 classes of {file}: give one name a "
        "class, or leave it out\n"
    )

    # Without names of its own a file may be one of a set, another of which has the last classes.
    np.savez(file, images=few.images, labels=np.arange(20) % 9)
    assert main(command) == 0
    assert (
        f"pmt: warning: --class-names gives 12 names, and the labels of {file} end at 8: the last "
        "3 classes have no image\n"
    ) in capsys.readouterr().err
    assert main([*command[:-1], ",".join(CLOTHES[:9])]) == 0
    assert "have no image" not in capsys.readouterr().err


def test_no_command_ignores_names_without_data(tmp_path, capsys):
    command = ["export", "fashion_mnist_dscnn", "--target", "generic", "--out", str(tmp_path / "o")]
    assert main([*command, "--class-names", "a,b"]) == 2
    assert "--class-names needs --data DIR" in capsys.readouterr().err
    assert main(["train", "--resume", str(tmp_path), "--class-names", "a,b"]) == 2
    assert "--resume takes no --class-names" in capsys.readouterr().err
