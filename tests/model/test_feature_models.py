"""Models that end in features: parts of a network, files, and what needs classes."""

import re

import numpy as np
import pytest
from networks import every_op, labels, pixels, residual_network, smooth_network

import pmt
from pmt.cli import main
from pmt.datasets import Dataset
from pmt.model import predict_files
from pmt.train.prepare import align
from pmt.train.prepare.clean_statistics import (
    measure_statistics,
    stored_statistics,
    with_statistics,
)


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
        lambda: predict_files(model, ["photo.png"]),
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
