"""Input stage: filters on images at their own size, then the network's input; in Pillow's bytes."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pmt
from pmt import Filter, InputStage
from pmt.datasets import Dataset
from pmt.net.graph import Graph, Op, Tensor
from pmt.net.image import build_image, read_graph

SHRINKAGE = Filter("dct_shrinkage", 40, "proportional")


def pixels(height, width, channels=3, count=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (count, height, width, channels), dtype=np.uint8)


def test_a_stage_is_kept_by_the_image_and_a_pickle_and_shown():
    stage = InputStage((40, 30), (Filter("switching_median", 32), SHRINKAGE))
    model = pmt.load("cifar10_small").with_input_stage(stage)
    for copy in (model.copy(), pickle.loads(pickle.dumps(model)), pmt.Model(model.image())):
        assert copy.input_stage == stage
        assert copy.image_shape == (40, 30, 3)
        assert copy.input_shape == (32, 32, 3)
    assert read_graph(model.image()).stage == stage
    assert build_image(model.to_graph()) == model.image()
    assert str(stage) == "switching_median 32, dct_shrinkage 40 proportional"
    assert str(InputStage((4, 4))) == "no filter"
    assert stage.record() == {
        "size": [40, 30],
        "filters": ["switching_median 32", "dct_shrinkage 40 proportional"],
    }
    assert model.features().input_stage == stage


def test_without_a_stage_the_image_is_that_of_before():
    model = pmt.load("cifar10_small")
    staged = model.with_input_stage(InputStage((32, 32), (SHRINKAGE,)))
    assert model.input_stage is None
    assert model.image_shape == model.input_shape
    assert staged.with_input_stage(None).image() == model.image()
    assert staged.image()[4] == 2  # the version, which a reader of before refuses
    assert model.image()[4] == 1


@given(st.integers(1, 90), st.integers(1, 90), st.integers(0, 2**16))
def test_a_stage_without_filters_resizes_as_pillow_does(height, width, seed):
    model = pmt.load("cifar10_small")
    images = pixels(height, width, seed=seed)
    resized = Dataset.from_arrays(images, [0, 0]).resize(32, 32).images
    staged = model.with_input_stage(InputStage((height, width)))
    np.testing.assert_array_equal(staged.prepare(images), model.prepare(resized))


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (Filter("switching_median", 32), [[10, 10, 10], [10, 10, 10], [10, 10, 30]]),
        (Filter("switching_median", 240), [[10, 10, 10], [10, 250, 10], [10, 10, 30]]),
        (Filter("sharpening", 16), [[0, 0, 0], [0, 255, 0], [0, 0, 24]]),
        (Filter("tone_curve", -8), [[5, 5, 5], [5, 248, 5], [5, 5, 17]]),
        (Filter("tone_curve", 8), [[15, 15, 15], [15, 252, 15], [15, 15, 43]]),
        (Filter("standardization", 45), [[22, 22, 22], [22, 166, 22], [22, 22, 34]]),
    ],
)
def test_filters_on_nine_pixels(one, expected):
    image = np.full((1, 3, 3, 1), 10, np.uint8)
    image[0, 1, 1], image[0, 2, 2] = 250, 30
    model = gray_model(3)
    found = model.with_input_stage(InputStage((3, 3), (one,))).prepare(image)
    assert (found[0, ..., 0].astype(int) + 128).tolist() == expected


def gray_model(height, width=0, channels=1):
    """Return a linear network of images of a size, whose input is pixel - 128."""
    width = width or height
    tensors = [Tensor("image", height, width, channels, 1.0, 0), Tensor("out", 1, 1, 2, 1.0, 0)]
    head = Op("fully_connected", "head", (0,), 1)
    head.weights = np.ones((2, height * width * channels), np.int8)
    head.weight_scales = np.ones(2, np.float32)
    count = min(channels, 4)
    return pmt.Model.from_graph(Graph(tensors, [head], 0, 1, (128.0,) * count, (1.0,) * count))


def test_shrinkage_removes_what_is_below_its_threshold_and_keeps_an_edge():
    model = gray_model(16)
    image = np.full((1, 16, 16, 1), 60, np.uint8)
    image[:, :, 8:] = 200
    noisy = image + pixels(16, 16, 1, 1, seed=3) % 8
    shrunk = model.with_input_stage(InputStage((16, 16), (Filter("dct_shrinkage", 30),)))
    found = shrunk.prepare(noisy.astype(np.uint8))[0, ..., 0].astype(int) + 128
    assert found[:, :6].std() < 1.0 < noisy[0, :, :6].std()
    assert (found[:, 8] - found[:, 7]).min() > 120
    np.testing.assert_allclose(shrunk.prepare(image), model.prepare(image), atol=3)


def test_every_way_to_run_a_model_takes_images_of_its_stage():
    model = pmt.load("cifar10_small").with_input_stage(InputStage((20, 24), (SHRINKAGE,)))
    images = pixels(20, 24, count=19)
    prepared = model.prepare(images)
    bare = model.with_input_stage(None)
    np.testing.assert_array_equal(model.logits(images), bare.logits(prepared))
    np.testing.assert_array_equal(model.logits(images, threads=1), model.logits(images, threads=2))
    np.testing.assert_array_equal(model.logits(prepared), bare.logits(prepared))
    data = Dataset.from_arrays(images, np.arange(19) % 10)
    assert model.evaluate(data).accuracy == bare.evaluate(Dataset(prepared, *labels(data))).accuracy
    with pytest.raises(ValueError, match=r"\(N, 20, 24, 3\) for this model; got \(19, 32, 32, 3\)"):
        model.prepare(pixels(32, 32, count=19))


def test_floats_are_refused_where_a_stage_takes_pixels():
    """Filters cannot run on them, and would be left out without a word."""
    plain = pmt.load("cifar10_small")
    model = plain.with_input_stage(InputStage((32, 32), (SHRINKAGE,)))
    model = pmt.statistics(model, pixels(32, 32, count=9))
    images = pixels(32, 32, count=9).astype(np.float32) / 255
    data = Dataset.from_arrays(images, np.arange(9))
    learner = pmt.Learner(model, samples=9)
    trainer = pmt.ZOTrainer(layers="head", epochs=1, queries=2, batch=4)
    calls = [
        *(model.prepare, model.logits, model.predict, model.predict_proba, model.outputs),
        *(learner.predict, learner.observe),
        lambda x: model.evaluate(data),
        lambda x: model.score_images(data),
        lambda x: model.confusion(data),
        lambda x: pmt.align(model.copy(), x),
        lambda x: pmt.statistics(model, x),
        lambda x: trainer.fit(model.copy(), data, progress=False),
        lambda x: pmt.Engine(model).logits(x),
    ]
    rule = r"images is an array of float32, and the model has an input stage, which takes uint8 "
    rule += r"pixels 0\.\.255 of shape \(N, 32, 32, 3\): give these, int8 inputs of the network"
    for call in calls:
        with pytest.raises(TypeError, match=rule):
            call(images)
    assert plain.prepare(images).dtype == np.int8


def labels(data):
    return data.labels, data.class_names, data.name


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Filter("median", 3), "name='median' is unknown; choose one of switching_median"),
        (lambda: Filter("sharpening", 0), r"strength of sharpening=0 must be 1\.\.255"),
        (lambda: Filter("tone_curve", -16), r"strength of tone_curve=-16 must be -15\.\.15"),
        (lambda: Filter("tone_curve", 0), "strength of tone_curve=0 changes nothing"),
        (lambda: Filter("sharpening", 3, "square_root"), "noise='square_root' of sharpening"),
        (lambda: Filter("dct_shrinkage", 3, "gauss"), "noise='gauss' of dct_shrinkage: use const"),
        (lambda: InputStage((0, 4)), r"height=0 must be 1\.\.4096"),
        (lambda: InputStage((4, 4097)), r"width=4097 must be 1\.\.4096"),
        (lambda: InputStage((3, 9), (SHRINKAGE,)), "needs images of 4 rows and columns or more"),
        (lambda: InputStage((9, 9), (SHRINKAGE,) * 9), "there are 9, at most 8"),
    ],
)
def test_what_is_out_of_range_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_strength_is_an_integer():
    with pytest.raises(TypeError, match=r"strength of sharpening=1\.5 must be an integer"):
        Filter("sharpening", 1.5)


def test_a_network_of_many_channels_has_no_stage():
    model = gray_model(8, channels=5)
    with pytest.raises(ValueError, match="input has 5 channels, an image at most 4"):
        model.with_input_stage(InputStage((8, 8)))


def test_a_file_of_another_project_holds_no_filters(tmp_path):
    model = pmt.load("cifar10_small")
    staged = model.with_input_stage(InputStage((32, 32), (SHRINKAGE,)))
    with pytest.raises(ValueError, match=r"only a \.pmt image holds filters before the network"):
        staged.save(tmp_path / "model.npz")
    assert list(tmp_path.iterdir()) == []
    model.with_input_stage(InputStage((40, 40))).save(tmp_path / "resized.npz")
    staged.save(tmp_path / "model.h")
    staged.save(tmp_path / "model.pmt")
    assert pmt.load(tmp_path / "model.pmt").input_stage == staged.input_stage
