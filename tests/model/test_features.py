"""Inputs that are not images, from array to run; models that end in features."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from networks import every_op, labels, pixels, residual_network, smooth_network

import pmt
from pmt.cli import main
from pmt.datasets import Dataset, save_npz, simulated_motion
from pmt.model import predict
from pmt.net.graph import Graph, Op, Tensor
from pmt.protocol import DataSource
from pmt.quantization import FloatGraph, FloatOp, FloatTensor, quantize_graph
from pmt.train.prepare import align
from pmt.train.prepare.clean_statistics import (
    measure_statistics,
    stored_statistics,
    with_statistics,
)

SIGNAL = Path(__file__).parents[1] / "keras" / "signal.tflite"  # 32 steps of 3 channels, 4 classes


def linear(shape: tuple[int, int, int], scale: float = 0.5, zero_point: int = 3) -> pmt.Model:
    """A linear layer of two classes on an input of a shape."""
    size = int(np.prod(shape))
    tensors = [Tensor("input", *shape, scale, zero_point), Tensor("logits", 1, 1, 2, 1.0, 0)]
    head = Op(
        "fully_connected",
        "head",
        (0,),
        1,
        weights=np.resize(np.arange(-3, 4), (2, size)).astype(np.int8),
        bias=np.zeros(2, np.int32),
        weight_scales=np.ones(2, np.float32),
    )
    channels = min(shape[2], 4)
    return pmt.Model.from_graph(
        Graph(tensors, [head], 0, 1, (0.0,) * channels, (1.0,) * channels, {"head": [0]})
    )


def windows(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0, 1, (count, 32, 3)).astype(np.float32)


def test_float_inputs_are_quantized_with_scale_and_zero_point():
    model = linear((1, 1, 6))
    x = np.array([[[[0.0, 0.24, 0.25, 0.75, -70.0, 70.0]]]], np.float32)
    # x / 0.5 + 3, halves to even, clipped
    assert model.prepare(x).ravel().tolist() == [3, 3, 3, 5, -128, 127]


def test_int8_inputs_are_taken_as_they_are():
    model = linear((1, 1, 6))
    x = np.arange(-3, 3, dtype=np.int8).reshape(1, 1, 1, 6)
    assert model.prepare(x).tolist() == x.tolist()


@given(
    shape=st.sampled_from([(49, 10), (1, 49, 10), (49, 1, 10), (49, 10, 1)]),
    wanted=st.sampled_from([(49, 10, 1), (1, 49, 10)]),
)
def test_axes_of_length_one_may_be_left_out(shape, wanted):
    x = np.arange(2 * 490, dtype=np.int64).reshape(2, *shape).astype(np.int8)
    prepared = linear(wanted).prepare(x)
    assert prepared.shape == (2, *wanted)
    assert prepared.ravel().tolist() == x.ravel().tolist()


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (
            np.zeros((2, 10, 49), np.float32),
            ValueError,
            "inputs must have shape (N, 49, 10, 6) for this model, where axes of length 1 may be "
            "left out; got (N, 10, 49)",
        ),
        (
            np.zeros((49, 10, 6), np.float32),
            ValueError,
            "inputs must have shape (N, 49, 10, 6) for this model, where axes of length 1 may be "
            "left out; got (49, 10, 6); of one input x give x[None]",
        ),
        (
            np.full((1, 49, 10, 6), np.inf, np.float32),
            ValueError,
            "inputs hold a value that is not finite: remove or replace it",
        ),
        (
            np.zeros((2, 49, 10, 6), np.uint8),
            TypeError,
            "images are uint8 pixels, but the model's input has 6 channels, more than the 4 of an "
            "image; give float32 or int8 inputs",
        ),
        (
            np.zeros((2, 49, 10, 6)),
            TypeError,
            "images is an array of float64: must be a NumPy array of uint8 pixels 0..255, or of "
            "float32 or int8 inputs that are not pixels; scale pixels to 0..255 and convert them "
            "with .astype(numpy.uint8), other inputs with .astype(numpy.float32)",
        ),
    ],
)
def test_inputs_that_do_not_fit_are_refused(x, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        linear((49, 10, 6)).prepare(x)


def test_many_float_inputs_are_quantized_in_parts(monkeypatch):
    model, x = pmt.load(SIGNAL), windows(50)
    whole = model.prepare(x)
    monkeypatch.setattr("pmt.model.input_conversion._AT_ONCE", 200)
    np.testing.assert_array_equal(model.prepare(x), whole)
    assert model.prepare(x[:0]).shape == (0, 1, 32, 3)


@pytest.mark.filterwarnings("ignore:.* in valid are also in data")
def test_float_and_int8_inputs_train_to_the_same_bytes():
    model, x = pmt.load(SIGNAL), windows(80)
    y = (x.mean(axis=(1, 2)) > 0.5).astype(np.int64) + 2 * (x[:, 0, 0] > 0.5)
    models = [model.copy(), model.copy()]
    results = [
        pmt.ZOTrainer(layers="all", batch=20, epochs=2, keep_best=False).fit(
            one, pair, valid=pair, progress=False
        )
        for one, pair in zip(models, [(x, y), (model.prepare(x), y)], strict=True)
    ]
    assert models[0].image() == models[1].image() != model.image()
    figures = [[epoch["valid_loss"] for epoch in result.epochs] for result in results]
    assert figures[0] == figures[1]


def test_inputs_outside_of_what_the_model_can_hold_bring_a_warning():
    model, y = pmt.load(SIGNAL), np.zeros(10, np.int64)
    message = (
        "data set 'dataset': 90% of its inputs lie outside 0..0.9991, which the model's input can "
        "hold, and are clipped; normalize them as in the model's training"
    )
    x = np.full((10, 32, 3), 5.0)
    x[0] = 0.5
    with pytest.warns(UserWarning, match=f"^{re.escape(message)}$") as caught:
        model.evaluate((x, y))
    assert caught[0].filename == __file__
    message = (
        "data set 'dataset': its inputs, 0..0.01, fill fewer than 8 of the 256 steps of 0.003918 "
        "that the model's input has; normalize them as in the model's training"
    )
    with pytest.warns(UserWarning, match=f"^{re.escape(message)}$"):
        model.evaluate((np.resize([0.0, 0.01], (10, 32, 3)), y))


def test_columns_that_int8_loses_bring_a_warning():
    model = linear((1, 1, 4))  # steps of 0.5
    x = np.random.default_rng(0).uniform(-60.0, 60.0, (20, 4))
    x[:, 1] = 3.0  # tells nothing
    x[:2] = [[60, 3, 0.9, 0], [-60, 3, 0, 0.25]]
    x[2:, 2:] = 0.1
    message = (
        "data set 'data': the model's input loses 2 of its 4 columns: the narrowest spans 0.25, "
        "the widest 120, and a step of int8 is 0.5; standardize the columns, (x - mean) / std, "
        "before the float network is trained"
    )
    y, once = np.arange(20) % 2, {"layers": "head", "epochs": 1, "batch": 4, "preparation": "none"}
    with pytest.warns(UserWarning, match=f"^{re.escape(message)}$") as caught:
        pmt.ZOTrainer(**once).fit(model, (x, y), progress=False)
    assert [one.filename for one in caught] == [__file__]
    x[0, 2:] = 1.1
    pmt.ZOTrainer(**once).fit(model, (x, y), progress=False)


def test_pixels_of_0_to_1_for_a_model_that_reads_others_bring_a_warning():
    model = smooth_network()  # (pixel - 128) / 128
    y, x = [0, 1, 2], np.linspace(0, 1, 3 * 48).reshape(3, 4, 4, 3)
    message = (
        "data set 'dataset': its inputs, 0..1, look like pixels divided by 255, but the model "
        "reads pixels as -1..0.9922; give uint8 pixels, which the model normalizes itself"
    )
    with pytest.warns(UserWarning, match=f"^{re.escape(message)}$") as caught:
        model.evaluate((x, y))
    assert caught[0].filename == __file__
    same = Dataset.from_arrays(np.arange(144, dtype=np.uint8).reshape(3, 4, 4, 3), y)
    normalized = (same.images.astype(np.float64) - 128) / 128
    assert model.evaluate((normalized, y)) == model.evaluate(same)


@pytest.fixture
def folder(tmp_path):
    """A data set of float32 windows on disk, in two splits."""
    for seed, split in enumerate(("train", "test")):
        x = windows(60, seed)
        data = Dataset.from_arrays(x, 2 * (x[:, 0, 0] > 0.5) + (x[:, 1, 0] > 0.5), name=split)
        save_npz(data, tmp_path / f"{split}.npz")
    return tmp_path


def test_npz_files_of_inputs_come_back_whole(folder):
    data = pmt.datasets.load(folder, split="train")
    assert repr(data) == "Dataset('train', 60 float32 inputs 1x32x3, 4 classes)"
    np.testing.assert_array_equal(data.images[:, 0], windows(60))
    held = f"{re.escape(str(folder))} holds float32 inputs"
    message = rf"^size=8: {held}, which are not pixels and "
    with pytest.raises(ValueError, match=message):
        pmt.datasets.load(folder, size=8)


def test_npz_files_of_values_that_are_not_finite_are_refused(tmp_path):
    path = tmp_path / "nan.npz"
    np.savez(path, images=np.full((2, 3), np.nan, np.float32), labels=[0, 1])
    message = (
        f"{path}: images holds a value that is not finite; remove or replace it, for instance with "
        "numpy.nan_to_num(images)"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        pmt.datasets.load(path)


def test_commands_train_and_evaluate_on_inputs(folder, tmp_path, capsys):
    run = str(tmp_path / "run")
    given = [str(SIGNAL), "--data", str(folder)]
    assert main(["train", *given, "--layers", "all", "--epochs", "1", "--out", run]) == 0
    after = re.search(r"^accuracy \S+ -> (\S+),", capsys.readouterr().out, re.MULTILINE)
    assert after is not None
    assert main(["eval", run, "--data", str(folder)]) == 0
    assert f"accuracy {after[1]}  loss" in capsys.readouterr().out
    assert main(["select", *given, "--images", "60", "--held-out", "20"]) == 0
    assert "40 training, 20 held out" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            ["eval", str(SIGNAL), "--data", "FOLDER", "--corruption", "fog", "--severity", "1"],
            "--corruption='fog': FOLDER holds float32 inputs, and only images of uint8 pixels are "
            "corrupted; leave the option out, or store what was corrupted",
        ),
        (
            ["eval", "fashion_mnist_dscnn", "--data", "FOLDER"],
            "FOLDER: inputs must have shape (N, 28, 28, 1) for this model, where axes of length 1 "
            "may be left out; got (N, 1, 32, 3)",
        ),
        (
            ["show", "FOLDER", "--out", "FOLDER/sheet.png"],
            "data set 'test' holds float32 inputs: a sheet shows images of uint8 pixels; plot "
            "these with another program",
        ),
    ],
)
def test_commands_refuse_what_only_images_have(folder, command, message, capsys):
    assert main([word.replace("FOLDER", str(folder)) for word in command]) == 2
    assert capsys.readouterr().err == f"pmt: error: {message}\n".replace("FOLDER", str(folder))


def test_a_float_network_without_pixels_is_quantized_by_its_inputs():
    weights = np.array([[1.0, -1.0, 0.0, 0.0, 0.0, 0.5]], np.float32)
    head = FloatOp(
        "fully_connected", "head", (0,), 1, weights=weights, bias=np.zeros(1, np.float32)
    )
    tensors = [FloatTensor("input", 1, 1, 6), FloatTensor("logits", 1, 1, 1)]
    x = np.random.default_rng(0).uniform(-2, 4, (40, 1, 1, 6)).astype(np.float32)
    x[0, 0, 0, :2] = -2, 4
    graph = quantize_graph(FloatGraph(tensors, [head], 0, 1, (), ()), x)
    assert graph.tensors[0].scale == pytest.approx(6 / 255)
    model = pmt.Model.from_graph(graph)
    np.testing.assert_allclose(model.logits(x)[:, 0], x[:, 0, 0] @ weights[0], atol=0.04)
    message = r"^images are uint8 of shape \(8, 1, 1, 6\), but the network reads float32 images"
    with pytest.raises(ValueError, match=message):
        quantize_graph(FloatGraph(tensors, [head], 0, 1, (), ()), np.zeros((8, 1, 1, 6), np.uint8))


def test_simulated_motion_is_the_same_every_time_and_drifts():
    data = simulated_motion("train", windows=10)
    assert repr(data) == "Dataset('motion', 10 float32 inputs 1x128x6, 5 classes)"
    assert data.class_names == ("rest", "walk", "run", "stairs", "cycle")
    assert data.labels.tolist() == [0, 1, 2, 3, 4] * 2
    np.testing.assert_array_equal(data.images, simulated_motion("train", windows=10).images)
    assert not np.array_equal(data.images, simulated_motion("test", windows=10).images)
    resting = data.images[0, 0].mean(axis=0)
    assert resting[2] == pytest.approx(1.0, abs=0.1)  # gravity
    turned = simulated_motion("train", windows=10, drift=1.0).images[0, 0].mean(axis=0)
    assert turned[0] == pytest.approx(0.2 + 1.3 * np.sin(np.pi / 3), abs=0.2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"split": "valid"}, "split='valid' is unknown; choose one of train, test"),
        ({"windows": 0}, "windows=0 must be 1..1000000"),
        ({"drift": np.nan}, "drift=nan must be a finite number, for example 1.0"),
    ],
)
def test_simulated_motion_checks_its_arguments(arguments, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        simulated_motion(**arguments)  # type: ignore[arg-type]


def test_a_data_source_gives_inputs_as_they_are(folder):
    data = DataSource(str(folder)).load("test", pmt.load(SIGNAL), limit=20)
    assert repr(data) == "Dataset('test', 20 float32 inputs 1x32x3, 4 classes)"


@pytest.mark.parametrize(
    "call",
    ["evaluate", "score_images", "confusion", "predict", "predict_proba", "logits", "outputs"],
)
def test_floats_of_0_to_255_bring_a_warning(call):
    model = smooth_network()  # (pixel - 128) / 128
    x = np.zeros((3, 4, 4, 3), np.float32)
    x[0, 0, 0] = 255  # few are out of range
    labeled = call in ("evaluate", "score_images", "confusion")
    name, given = ("dataset", ((x, [0, 1, 2]),)) if labeled else ("images", (x,))
    message = (
        f"data set '{name}': its inputs, 0..255, look like pixels 0..255, but the model reads "
        "pixels as -1..0.9922; give uint8 pixels, which the model normalizes itself"
    )
    with pytest.warns(UserWarning, match=f"^{re.escape(message)}$") as caught:
        getattr(model, call)(*given)
    assert [warning.filename for warning in caught] == [__file__]
    inputs = (x - 128) / 128
    getattr(model, call)((inputs, [0, 1, 2]) if labeled else inputs)


def test_pixels_of_few_levels_bring_a_warning_unless_they_are_black_or_one_image():
    model, y = smooth_network(), [0, 1, 2]
    x = np.zeros((3, 4, 4, 3), np.uint8)
    model.evaluate((x, y))
    x[2, 0, 0] = 16
    model.logits(x[2:])
    message = (
        "data set 'dataset': its brightest pixel is 16, and the model reads pixels of 0..255; if "
        "16 is white, multiply by 255 / 16: (images * (255 / 16)).astype(numpy.uint8)"
    )
    with pytest.warns(UserWarning, match=f"^{re.escape(message)}$") as caught:
        model.evaluate((x, y))
    assert [one.filename for one in caught] == [__file__]
    x[0] = 32
    model.evaluate((x, y))


def test_floats_outside_of_the_range_bring_a_warning_where_they_are_predicted():
    x = np.full((10, 32, 3), 5.5, np.float32)
    with pytest.warns(
        UserWarning, match=r"^data set 'images': 100% of its inputs lie outside 0\.\."
    ):
        pmt.load(SIGNAL).predict(x)


def exact(text: str) -> str:
    return f"^{re.escape(text)}$"


@pytest.mark.parametrize(
    ("layer", "shape", "text", "blocks"),
    [
        ("stem", (8, 8, 8), "8x8x8 features", {"B1": [0], "all": [0]}),
        ("sum", (8, 8, 8), "8x8x8 features", {"B1": [0, 1], "B2": [2, 3], "all": [0, 1, 2, 3]}),
        (
            6,
            (1, 1, 8),
            "8 features",
            {"B1": [0, 1], "B2": [2, 3], "B3": [5], "all": [0, 1, 2, 3, 5]},
        ),
        (None, (1, 1, 8), "8 features", None),
        ("head", (1, 1, 4), "4 features", None),
    ],
)
def test_a_part_of_a_network_gives_the_activation_of_its_last_layer(layer, shape, text, blocks):
    model = residual_network()
    part = model.features(layer)
    assert (part.output_shape, part.output_text, part.is_classifier) == (shape, text, False)
    assert blocks is None or part.blocks == blocks
    assert (model.is_classifier, model.output_text) == (True, "4 classes")
    images = pixels(model, 3)
    found = part.outputs(images)
    assert found.shape == (3, *(shape if shape[0] > 1 else shape[2:]))
    op = part.core.ops()[-1]["name"]
    whole = next(one for one in model.core.ops() if one["name"] == op)
    tensor = model.core.tensors()[whole["output"]]
    found = part.core.logits(part.prepare(images), 1, True)
    for image, values in zip(model.prepare(images), found, strict=True):
        activation = model.core.activations(image)[whole["output"]].reshape(-1)
        real = (activation.astype(np.float32) - tensor["zero_point"]) * np.float32(tensor["scale"])
        np.testing.assert_array_equal(values, real)


def test_branches_that_the_output_does_not_depend_on_are_left_out():
    model = residual_network()
    graph = model.to_graph()
    project = model.features("project").to_graph()
    assert [op.name for op in project.ops] == ["stem", "expand", "depth", "project"]
    graph.ops[4].inputs = (1, 1)  # the sum no longer reads the block
    rewired = pmt.Model.from_graph(graph).features("sum")
    assert [op["name"] for op in rewired.core.ops()] == ["stem", "sum"]
    assert rewired.blocks == {"B1": [0], "all": [0]}


def test_the_part_is_independent_and_has_no_classes():
    graph = residual_network().to_graph()
    graph.metadata = {**graph.metadata, "class_names": list("abcd")}
    model = pmt.Model.from_graph(graph)
    part = model.features("head")
    assert part.metadata == {"name": "residual", "output": "features"}
    assert part.class_names is None
    part.set_weights("stem", np.zeros_like(part.weights("stem")))
    assert model.weights("stem").any()
    assert repr(part).startswith("<pmt.Model residual: 8x8x3 -> 4 features, 6 layers, ")


def test_a_layer_of_another_type_is_refused():
    message = "layer is list: must be the name or the index of one layer, a string or an integer"
    with pytest.raises(TypeError, match=f"^{message}$"):
        residual_network().features(["stem"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ("stam", "layer='stam' is not an op of the model; did you mean 'stem'?"),
        (9, "layer=9 is not an op of the model; `pmt info` lists names and indices"),
        (True, "layer=True is not an op of the model; `pmt info` lists names and indices"),
        ("B2", "layer='B2' is a block; give one of its layers: depth, project"),
    ],
)
def test_what_is_no_layer_is_refused(layer, message):
    with pytest.raises(ValueError, match=exact(message)):
        residual_network().features(layer)


def test_a_part_without_weights_is_refused():
    with pytest.raises(
        ValueError,
        match=exact(
            "layer='pad': no layer with weights comes before its output, so that nothing could be "
            "trained; choose a later one"
        ),
    ):
        every_op().features("pad")
    first = smooth_network().features("conv")
    message = (
        "layer=None: 'conv' is the only layer with weights, and reads the input; name an op that "
        "comes after it"
    )
    with pytest.raises(ValueError, match=exact(message)):
        first.features()


@pytest.mark.parametrize(("layer", "text"), [("sum", "8x8x8 features"), (None, "8 features")])
def test_whatever_needs_classes_refuses_features(layer, text):
    model = residual_network().features(layer)
    images = pixels(model, 4)
    data = Dataset.from_arrays(images, [0, 1, 2, 3])
    message = f"the model gives {text} and no logits of classes; model.outputs(images) returns them"
    for call in (
        lambda: model.predict(images),
        lambda: model.predict_proba(images),
        lambda: model.evaluate(data),
        lambda: model.score_images(data),
        lambda: model.confusion(data),
        lambda: model.check_classes(data),
        lambda: predict(model, ["photo.png"]),
    ):
        with pytest.raises(ValueError, match=exact(message)):
            call()


def test_eval_refuses_features(tmp_path, capsys):
    pmt.load("fashion_mnist_dscnn").features().save(tmp_path / "vector.pmt")
    assert main(["eval", str(tmp_path / "vector.pmt"), "--data", "bundled"]) == 2
    assert "the model gives 128 features and no logits of classes" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", ["pmt", "tflite", "onnx"])
@pytest.mark.parametrize("layer", ["sum", "down", "pooled"])
def test_files_hold_features(suffix, layer, tmp_path):
    if suffix != "pmt":
        pytest.importorskip(suffix)
    part = residual_network().features(layer)
    part.save(tmp_path / f"part.{suffix}")
    back = pmt.load(tmp_path / f"part.{suffix}")
    images = pixels(part, 20)
    np.testing.assert_array_equal(
        back.core.logits(back.prepare(images), 1, True),
        part.core.logits(part.prepare(images), 1, True),
    )
    assert back.output_shape == part.output_shape
    # That a vector is an embedding stands in a .pmt alone.
    assert back.is_classifier == (layer == "pooled" and suffix != "pmt")


def test_info_says_what_the_model_gives(tmp_path, capsys):
    residual_network().features("down").save(tmp_path / "down.pmt")
    assert main(["info", str(tmp_path / "down.pmt")]) == 0
    assert "48,640 MACs per image, 4x4x8 features\n" in capsys.readouterr().out


def test_a_part_keeps_the_statistics_of_its_layers():
    model = residual_network()
    images = pixels(model, 40)
    model = with_statistics(model, measure_statistics(model, images))
    part = model.features("project")
    assert set(stored_statistics(part).windows) < set(stored_statistics(model).windows)
    before = part.image()
    align(part, (images // 2).astype(np.uint8))
    assert part.image() != before


def test_labels_of_a_classifier_are_checked_as_ever():
    model = residual_network()
    found = model.evaluate((pixels(model, 6), labels(model, 6)))
    assert found.n == 6
