"""The run that a folder holds: another model, data or options are refused with what differs."""

import dataclasses
import re
import shutil

import numpy as np
import pytest
from cli_files import same_weights
from networks import residual_network
from toy_trainer import Stop, Toy, ToyOptions, data, flat, stop_at

import pmt

TRAINER = {"layers": "head", "batch": 4, "epochs": 1, "queries": 2, "threads": 1}


def fit(out, *, model=None, train=None, valid=None, source=None, **changes):
    return pmt.ZOTrainer(**{**TRAINER, **changes}).fit(
        model or residual_network(),
        train or data(),
        valid=valid,
        out=out,
        source=source,
        progress=False,
    )


def relabeled(train):
    return dataclasses.replace(train, labels=(train.labels + 1) % 4)


def other_model():
    model = residual_network()
    weights = model.core.weights(0)
    model.core.set_parameters(0, (weights // 2).astype(np.int8), model.core.bias(0))
    return model


CRC = "there CRC-32 [0-9a-f]{8}, here CRC-32 [0-9a-f]{8}"


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize(
    ("changes", "differences"),
    [
        ({"model": other_model()}, f"model: {CRC}"),
        ({"train": data(13, seed=5)}, f"training images: {CRC}; training labels: {CRC}"),
        ({"train": relabeled(data())}, f"training labels: {CRC}"),
        ({"valid": None}, "validation images: .*, here none; validation labels: .*, here none"),
        ({"valid": data(6, 9)}, f"validation images: {CRC}; validation labels: {CRC}"),
        (
            {"queries": 4, "seed": 9},
            "option queries: there 2, here 4; option seed: there 1, here 9",
        ),
        ({"source": {"from": "b"}}, "source from: there 'a', here 'b'"),
        ({"source": {}}, "source from: there 'a', here none"),
    ],
    ids=["model", "images", "labels", "no valid", "valid", "options", "source", "no source"],
)
def test_what_differs_is_named_and_nothing_changes(tmp_path, finished, changes, differences):
    out, began = tmp_path / "run", {"valid": data(5, 9), "source": {"from": "a"}}
    if finished:
        fit(out, **began)
    else:
        with pytest.raises(Stop):
            pmt.ZOTrainer(**TRAINER).fit(
                residual_network(), data(), out=out, progress=stop_at(2), **began
            )
    files = {path: path.read_bytes() for path in out.iterdir()}
    given = {**began, **changes}
    model = given.pop("model", residual_network())
    before = model.image()
    message = (
        rf"^out='{re.escape(str(out))}' holds a run with other options or data; choose another "
        rf"folder, give what it began with, or load the model that is in it: {differences}$"
    )
    with pytest.raises(pmt.errors.OtherRunError, match=message):
        fit(out, model=model, **given)
    assert model.image() == before
    assert {path: path.read_bytes() for path in out.iterdir()} == files


def test_the_model_may_be_the_one_that_the_run_saved(tmp_path):
    whole = fit(tmp_path / "whole")
    model = residual_network()
    with pytest.raises(Stop):
        pmt.ZOTrainer(**TRAINER).fit(model, data(), out=tmp_path / "run", progress=stop_at(2))
    shutil.copytree(tmp_path / "run", tmp_path / "loaded")
    assert fit(tmp_path / "run", model=model).model.image() == whole.model.image()
    loaded = fit(tmp_path / "loaded", model=pmt.load(tmp_path / "loaded"))
    assert same_weights(loaded.model, whole.model)
    assert fit(tmp_path / "run", model=whole.model).model is whole.model
    with pytest.raises(ValueError, match="model: there CRC-32"):
        fit(tmp_path / "run", model=other_model())


def test_another_trainer_is_named(tmp_path):
    fit(tmp_path / "run")
    with pytest.raises(ValueError, match=r"trainer: there 'zeroth_order', here 'toy'$"):
        Toy().run(out=tmp_path / "run")


def test_a_trainer_of_the_users_own_resumes_and_its_options_are_read(tmp_path):
    whole = Toy().run(out=tmp_path / "whole")
    with pytest.raises(Stop):
        Toy().run(out=tmp_path / "run", progress=stop_at(4))
    run = Toy().run(out=tmp_path / "run")
    assert run.model.image() == whole.model.image()
    again = Toy().run(out=tmp_path / "run")
    assert again.epochs == run.epochs
    folder = pmt.RunFolder(tmp_path / "run")
    assert folder.trainer() == "toy"
    assert '\n[run]\ntrainer = "toy"\n\n' in (folder.path / "config.toml").read_text()
    assert folder.read_config(options=ToyOptions) == (ToyOptions(), {})
    message = (
        r"trainer 'toy' is unknown; it may .*or the class of its options: read_config\(options="
    )
    with pytest.raises(ValueError, match=message):
        folder.read_config()
    with pytest.raises(ValueError, match=r"option seed: there 1, here 2$"):
        Toy(seed=2).run(out=tmp_path / "run")


def test_a_run_that_chooses_on_given_images_is_another(tmp_path):
    Toy(losses=flat(4)).run(held_out=data(5, 9), out=tmp_path / "run")
    with pytest.raises(ValueError, match=r"held-out images: there CRC-32 \w+, here none"):
        Toy().run(out=tmp_path / "run")
