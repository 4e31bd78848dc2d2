"""The class names of a model that is trained for other classes than it names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from toy_trainer import Stop, stop_at

import pmt
from pmt.train.learned_classes import learned_classes

ANIMALS = tuple(f"animal {i}" for i in range(10))
SHORT = {"layers": "head", "epochs": 1, "queries": 2, "batch": 10}


def animals(count: int = 40, names: tuple[str, ...] = ANIMALS) -> pmt.datasets.Dataset:
    data = pmt.datasets.bundled("train").take(count)
    return replace(data, labels=(data.labels * 3 + 1) % 10, class_names=names, name="animals")


def clothes() -> pmt.Model:
    return pmt.load("fashion_mnist_dscnn")


def test_a_model_trained_for_other_classes_has_their_names(tmp_path):
    model = clothes()
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


def test_a_model_that_is_kept_as_it_was_keeps_its_names():
    model = clothes()
    data = pmt.datasets.bundled("test").take(40)
    held_out = replace(data, class_names=ANIMALS)
    result = pmt.ZOTrainer(**SHORT).fit(model, animals(), held_out=held_out, progress=False)
    assert result.kept["phase"] == "start"
    assert model.class_names == clothes().class_names


def test_without_the_head_the_names_stay():
    model = clothes()
    short = {**SHORT, "layers": "B1", "keep_best": False}
    pmt.ZOTrainer(**short).fit(model, animals(), progress=False)
    assert model.class_names == clothes().class_names


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
