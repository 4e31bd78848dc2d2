"""The class names of a model that is trained for other classes than it names."""

import re
from dataclasses import replace

import numpy as np
import pytest
from toy_trainer import Stop, stop_at

import pmt
from pmt.model.data_checks import has_unlike_classes
from pmt.train.training_data import learned_classes, note_on_classes

ANIMALS = tuple(f"animal {i}" for i in range(10))
OTHERS = (
    "data set 'animals' has other classes (animal 0, animal 1, animal 2, animal 3 and 6 more) than "
    "the model (T-shirt/top, Trouser, Pullover, Dress and 6 more)"
)
SHORT = {"layers": "head", "epochs": 1, "queries": 2, "batch": 10}


@pytest.fixture
def model():
    return clothes()


def animals(count: int = 40, names: tuple[str, ...] = ANIMALS) -> pmt.datasets.Dataset:
    data = pmt.datasets.bundled("train").take(count)
    return replace(data, labels=(data.labels * 3 + 1) % 10, class_names=names, name="animals")


def clothes() -> pmt.Model:
    return pmt.load("fashion_mnist_dscnn")


def test_a_model_trained_for_other_classes_has_their_names(model, tmp_path):
    before = model.class_names
    result = pmt.ZOTrainer(**SHORT).fit(model, animals(), out=tmp_path / "run", progress=False)
    assert result.kept.get("phase") != "start"
    assert model.class_names == ANIMALS
    assert model.metadata["source"] == clothes().metadata["source"]
    assert pmt.load(tmp_path / "run").class_names == ANIMALS
    # The same call on the finished run, with the model as it was and as the folder holds it.
    for again in (clothes(), pmt.load(tmp_path / "run")):
        pmt.ZOTrainer(**SHORT).fit(again, animals(), out=tmp_path / "run", progress=False)
        assert again.class_names == ANIMALS
        assert np.array_equal(again.weights("head"), model.weights("head"))
    assert clothes().class_names == before


def test_a_run_that_is_resumed_takes_the_names_too(tmp_path):
    trainer = pmt.ZOTrainer(**SHORT, keep_best=False)
    with pytest.raises(Stop):
        trainer.fit(clothes(), animals(), out=tmp_path / "run", progress=stop_at(2))
    assert pmt.load(tmp_path / "run").class_names == clothes().class_names
    model = clothes()
    trainer.fit(model, animals(), out=tmp_path / "run", progress=False)
    assert model.class_names == ANIMALS
    assert pmt.load(tmp_path / "run").class_names == ANIMALS


def test_a_model_that_is_kept_as_it_was_keeps_its_names(model):
    data = pmt.datasets.bundled("test").take(40)
    held_out = replace(data, class_names=ANIMALS)
    result = pmt.ZOTrainer(**SHORT).fit(model, animals(), held_out=held_out, progress=False)
    assert result.kept["phase"] == "start"
    assert model.class_names == clothes().class_names


def test_without_the_head_the_names_stay(model):
    short = {**SHORT, "layers": "B1", "keep_best": False}
    message = (
        f"{OTHERS}, and layers='B1' leaves "
        "its head as it is; add the last layer, or give the model's names as class_names "
        "(--class-names) where the classes are the same"
    )
    with pytest.warns(UserWarning, match=f"^{re.escape(message)}$") as caught:
        pmt.ZOTrainer(**short).fit(model, animals(), progress=False)
    assert caught[0].filename == __file__
    assert model.class_names == clothes().class_names


def test_a_loss_that_reads_no_labels_brings_no_warning(model):
    short = {**SHORT, "layers": "B1", "keep_best": False, "loss": "entropy"}
    pmt.ZOTrainer(**short).fit(model, animals(), progress=False)
    assert model.class_names == clothes().class_names


def test_accuracy_on_other_classes_is_warned_of(model):
    message = (
        f"{OTHERS}: accuracy on them says "
        "nothing; train the model's head for them, or give the model's names as class_names "
        "(--class-names) where the classes are the same"
    )
    with pytest.warns(UserWarning, match=f"^{re.escape(message)}$") as caught:
        model.evaluate(animals())
    assert caught[0].filename == __file__
    # A head that has learned them brings no warning.
    pmt.ZOTrainer(**SHORT, keep_best=False).fit(model, animals(), progress=False)
    model.evaluate(animals())


@pytest.mark.parametrize(
    ("names", "unlike"),
    [
        (ANIMALS, True),
        (("T-SHIRT_top", "trouser", "pull-over", "dress", "COAT", *ANIMALS[5:]), False),
        (("T-shirt/top", "Trouser", "Pullover", "Dress", *ANIMALS[4:]), True),
        (("new", "T-shirt/top", "Trouser", "Pullover", "Dress", *ANIMALS[5:]), True),
        ((*ANIMALS, "one more"), True),
        (tuple(map(str, range(10))), False),
        (clothes().class_names, False),
        (clothes().class_names[::-1], False),  # matched by name, as the next one
        (tuple(name.upper() for name in clothes().class_names[::-1]), False),
        (tuple(f"{i}_{name}" for i, name in enumerate(clothes().class_names)), False),
        (tuple(f"{i + 1}. {name}" for i, name in enumerate(clothes().class_names)), False),
        (tuple(f"{i}{name}" for i, name in enumerate(clothes().class_names)), True),
        (tuple(f"{i}_{name}" for i, name in enumerate(ANIMALS)), True),
        (tuple(pmt.corruptions.names()[:10]), False),
    ],
)
def test_other_classes_are_those_of_which_most_have_other_names(names, unlike):
    assert has_unlike_classes(animals(names=names), clothes().class_names) is unlike
    assert not has_unlike_classes(animals(names=names), None)
    assert not has_unlike_classes(animals(names=names), tuple(map(str, range(10))))


def test_numbers_instead_of_names_bring_no_warning():
    data = animals()
    clothes().evaluate((data.images, data.labels))


def test_a_run_says_that_the_model_gets_other_classes():
    model, options = clothes(), pmt.ZOTrainer(**SHORT).options
    assert note_on_classes(model, animals(), options) == [
        f"{OTHERS}: where its trained head is kept, the model takes their names"
    ]
    assert note_on_classes(model, animals(), options.replace(layers="B1")) == []
    assert note_on_classes(model, pmt.datasets.bundled("train"), options) == []


def test_names_are_taken_where_there_is_one_for_each_class():
    model, numbered = clothes(), tuple(map(str, range(10)))
    assert learned_classes(model, animals()) == ANIMALS
    assert learned_classes(model, animals(names=numbered)) is None
    assert learned_classes(model, animals(names=(*ANIMALS, "one more"))) is None
    assert learned_classes(model, animals(names=model.class_names)) is None
    # In another order they are the same classes: a warning of `check_classes` says so.
    assert learned_classes(model, animals(names=model.class_names[::-1])) is None
    graph = model.to_graph()
    graph.metadata = {}
    assert learned_classes(pmt.Model.from_graph(graph), animals()) == ANIMALS
