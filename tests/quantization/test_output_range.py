"""The range of the int8 output, made wide enough for the logits of images."""

from dataclasses import replace

import numpy as np
import pytest

import pmt
from pmt.quantization import cover_logits
from pmt.quantization.output_range import fit_outputs

MODEL = "fashion_mnist_dscnn"


def with_output(model, scale, zero_point):
    graph = model.to_graph()
    output = replace(graph.tensors[graph.output], scale=scale, zero_point=zero_point)
    graph.tensors[graph.output] = output
    return pmt.Model.from_graph(graph)


def output_of(model):
    tensor = model.to_graph().tensors[model.core.output_tensor]
    return tensor.scale, tensor.zero_point


def test_logits_stay_and_the_int8_output_holds_them():
    images = pmt.datasets.bundled("test").images[:200]
    narrow = with_output(pmt.load(MODEL), 0.01, 0)
    wide = cover_logits(narrow, images)
    logits = narrow.logits(images)
    assert output_of(narrow) == pytest.approx((0.01, 0))
    assert np.array_equal(wide.logits(images), logits)
    cut = [np.abs(m.logits(images, int8_logits=True) - logits).max() for m in (narrow, wide)]
    assert cut[0] > 10.0
    assert cut[1] <= 0.51 * output_of(wide)[0]
    assert wide.core.has_linear_head


def test_an_output_that_suffices_keeps_its_range():
    images = pmt.datasets.bundled("test").images[:20]
    model = cover_logits(pmt.load(MODEL), images)
    again = cover_logits(model, images)
    assert again.image() == model.image()
    assert again is not model


@pytest.mark.parametrize(
    ("found", "scale", "zero_point"),
    [
        ((-12.8, 12.7), 0.1, 0),  # its own ends
        ((-12.849, 12.749), 0.1, 0),  # what rounding reaches
        ((-1.0, 25.6), (12.8 + 1.125 * 25.6) / 255, -50),
        ((-25.6, 0.0), (1.125 * 25.6 + 12.7) / 255, 49),
        ((-30.0, 40.0), 1.125 * 70 / 255, -19),
        ((-3.0, 3.4), 0.1, 0),  # a quarter
        ((-3.0, 3.3), 1.125 * 6.3 / 255, -7),
        ((0.0, 0.0), 0.1, 0),
    ],
)
def test_a_range_changes_where_it_is_exceeded_or_hardly_used(found, scale, zero_point):
    model = with_output(pmt.load(MODEL), 0.1, 0)
    fit_outputs(model, {model.core.output_tensor: found})
    assert output_of(model) == (pytest.approx(scale, rel=1e-6), zero_point)


def test_an_output_without_negative_logits_is_no_relu():
    model = with_output(pmt.load(MODEL), 0.1, -127)
    fit_outputs(model, {model.core.output_tensor: (-0.1, 1000.0)})
    assert output_of(model)[1] == -127
    assert model.core.has_linear_head


def test_wrong_arguments_are_named():
    images = pmt.datasets.bundled("test").images[:2]
    with pytest.raises(TypeError, match="model is None"):
        cover_logits(None, images)
    with pytest.raises(ValueError, match=r"model: cover_logits\(\) needs a linear last layer"):
        cover_logits(with_output(pmt.load(MODEL), 0.1, -128), images)
