"""Refusals of the .tflite importer: every problem in one message; damaged files take no memory."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fuzz.targets import TARGETS, check
from tflite_builder import SAME, VALID, TfliteBuilder, ramp, refused, saved
from tflite_networks import NetworkBuilder, Value, generated

from pmt.formats.tflite import importer as tflite
from pmt.formats.tflite.exporter import Flatbuffer
from pmt.formats.tflite.file import read_file

WINDOW = {"Padding": SAME, "StrideH": 1, "StrideW": 1}
TANH = 4


def test_everything_unsupported_is_in_one_error(tmp_path):
    b = TfliteBuilder()
    x, y, z = (
        b.activation(1, 8, 8, 2),
        b.activation(1, 8, 8, 2, scale=0.25),
        b.activation(1, 8, 8, 2),
    )
    u, v = b.activation(1, 8, 8, 2, dtype="INT16"), b.activation(1, 128, scale=9.0)
    kernel = b.constant(ramp(2, 3, 3, 2), scales=[1.0])
    b.op("LOGISTIC", [x], [y])
    b.op("CONV_2D", [y, kernel], [z], **WINDOW, FusedActivationFunction=TANH)
    b.op("ADD", [z, z], [u])
    b.op("RESHAPE", [z], [v])
    b.op("HARD_SWISH", [x], [w := b.activation(1, 128)])
    b.op("ADD", [v, w], [out := b.activation(1, 128)])
    b.op("ADD", [out, u], [end := b.activation(1, 128)])
    message = refused(tmp_path, b.bytes([x], [end], subgraphs=2))
    assert message.startswith("net.tflite: 5 things are not supported: ")
    assert "has 2 subgraphs, one is supported (convert one signature" in message
    assert (
        "ops 0, 4 (HARD_SWISH, LOGISTIC): this operator has no counterpart here (use RELU"
        in message
    )
    assert "op 1 CONV_2D: fused activation 4 (use NONE, RELU, RELU_N1_TO_1 or RELU6)" in message
    assert "ops 2, 6 (ADD): its activations are INT16, int8 is trained here (convert" in message
    assert "op 3 RESHAPE: input and output are quantized differently (convert" in message


def test_float_hybrid_and_uint8_networks(tmp_path):
    for dtype, weights, reason in (
        ("FLOAT32", np.ones((2, 48), np.float32), "op 0 FULLY_CONNECTED: computes in float ("),
        ("FLOAT32", ramp(2, 48), "op 0 FULLY_CONNECTED: is hybrid, dynamic-range quantized"),
        ("UINT8", 2 * ramp(2, 48).view(np.uint8), "its uint8 weights are"),
    ):
        b = TfliteBuilder()
        x, y = b.activation(1, 4, 4, 3, dtype=dtype), b.activation(1, 2, dtype=dtype)
        b.op("FULLY_CONNECTED", [x, b.constant(weights, scales=[1.0])], [y])
        message = refused(tmp_path, b.bytes([x], [y]))
        assert reason in message
        assert "with full-integer int8 quantization: a representative_dataset" in message


@pytest.mark.parametrize(
    ("weights", "options", "reason"),
    [
        (ramp(2, 3, 3, 3), {}, "its weights take 3 channels and give 2, its input has 2"),
        (ramp(3, 3, 3, 1), {}, "its weights take 1 channels and give 3, its input has 2"),
        (ramp(2, 3, 3, 2).astype(np.uint8), {}, "its weights have zero points other than 0"),
        (ramp(2, 18), {}, r"its weights are INT8 of shape \(2, 18\), not INT8 of rank 4"),
        (ramp(2, 3, 3, 2), {"FusedActivationFunction": TANH}, "fused activation 4"),
        (ramp(2, 3, 3, 2), {"StrideH": 0}, "must be positive"),
        (ramp(2, 3, 3, 2), {"Padding": -1}, r"padding -1 \(use SAME or VALID\)"),
        (ramp(2, 3, 3, 2), {"DilationHFactor": 200}, r"spans \(401, 3\)"),
        (ramp(2, 9, 3, 2), {"Padding": VALID}, "does not fit the input of 8x8"),
    ],
)
def test_convolutions(tmp_path, weights, options, reason):
    b = TfliteBuilder()
    x, y = b.activation(1, 8, 8, 2), b.activation(1, 8, 8, 2)
    w = b.constant(weights, scales=[1.0, 1.0])
    b.op("CONV_2D", [x, w], [y], **{**WINDOW, **options})
    with pytest.raises(ValueError, match=rf"op 0 CONV_2D: .*{reason}"):
        tflite.read(saved(tmp_path, b.bytes([x], [y])))


def convolution(b: TfliteBuilder, x: int, y: int, **weights: Any) -> None:
    bias = weights.pop("bias", None)
    w = b.constant(ramp(2, 3, 3, 2), **{"scales": [1.0], **weights})
    b.op("CONV_2D", [x, w] if bias is None else [x, w, bias], [y], **WINDOW)


@pytest.mark.parametrize(
    ("weights", "reason"),
    [
        ({"zero": 3}, "its weights have zero points other than 0"),
        ({"scales": [1.0, 2.0], "axis": 3}, "its weight scales run along dimension 3, not 0"),
        (
            {"scales": [1.0, 0.0]},
            "1 of its 2 weight scales are not positive and finite, such as 0.0",
        ),
        ({"scales": [np.inf]}, "1 of its 1 weight scales are not positive and finite, such as inf"),
        ({"scales": [1.0] * 3}, "3 weight scales for 2 output channels"),
        ({"bias": np.array([1, 2], np.int64)}, "its bias is not a constant of INT32"),
        ({"bias": np.array([1, 2, 3], np.int32)}, "3 biases for 2 output channels"),
        (
            {"bias": np.array([1, 2], np.int32), "bias_scales": [0.4]},
            "its bias has another scale than input scale times weight scale",
        ),
    ],
)
def test_parameters(tmp_path, weights, reason):
    b = TfliteBuilder()
    x, y = b.activation(1, 8, 8, 2), b.activation(1, 8, 8, 2)
    if "bias" in weights:
        scales = weights.get("bias_scales", ())
        weights = {"bias": b.constant(weights["bias"], scales=scales)}
    convolution(b, x, y, **weights)
    assert f"op 0 CONV_2D: {reason} (" in refused(tmp_path, b.bytes([x], [y]))


def test_shape_that_contradicts_the_operator(tmp_path):
    b = TfliteBuilder()
    x, y = b.activation(1, 8, 8, 2), b.activation(1, 5, 8, 2)
    convolution(b, x, y)
    message = refused(tmp_path, b.bytes([x], [y]))
    assert (
        "its output has shape (1, 5, 8, 2), but its inputs and options give (1, 8, 8, 2)" in message
    )


@pytest.mark.parametrize(
    ("shape", "signature", "reason"),
    [
        ((3, 8, 8, 2), (), "its input has batch size 3 (convert with batch size 1 or None)"),
        ((1, 8, 8, 2), (-1, -1, 8, 2), "its input has the open shape (-1, -1, 8, 2) (convert with"),
        ((1, 0, 8, 2), (), "an activation has shape (1, 0, 8, 2) ("),
        ((1, -8, 8, 2), (), "an activation has shape (1, -8, 8, 2) ("),
        ((1, 40000, 40000, 2), (), "of shape (1, 40000, 40000, 2) is too large (at most 2^28"),
    ],
)
def test_input_shapes(tmp_path, shape, signature, reason):
    b = TfliteBuilder()
    x, y = b.activation(*shape, signature=signature), b.activation(1, 8, 8, 2)
    convolution(b, x, y)
    assert reason in refused(tmp_path, b.bytes([x], [y]))


Part = Callable[[NetworkBuilder, Value], Value]


def two_activations(b: NetworkBuilder, x: Value) -> Value:
    z, u = b.output(x.shape, 1.0), b.output(x.shape, 1.0)
    b.file.op("ADD", [x.index, b.conv(x, 4, 3, stride=2).index], [z.index])
    b.file.op("MUL", [x.index, z.index], [u.index])
    return u


def whole_constant(b: NetworkBuilder, x: Value) -> Value:
    y = b.output(x.shape, 1.0)
    b.file.op("ADD", [x.index, b.file.constant(ramp(6, 6, 4), scales=[0.1])], [y.index])
    return y


def mean_over(*axes: int) -> Part:
    def build(b: NetworkBuilder, x: Value) -> Value:
        y = b.output((1, 4), 1.0)
        b.file.op("MEAN", [x.index, b.integers(*axes)], [y.index])
        return y

    return build


def computed_by(kind: str, *others: int, **options: int) -> Part:
    """A RESHAPE whose shape an operator computes of the activation's."""

    def build(b: NetworkBuilder, x: Value) -> Value:
        sizes, other, y = b.file.sizes(4), b.file.sizes(4), b.like(x, 1, 144)
        b.file.op("SHAPE", [x.index], [sizes])
        operands = [b.integers(*values) for values in others] or [sizes]
        b.file.op(kind, [sizes, *operands], [other], **options)
        b.file.op("RESHAPE", [x.index, other], [y.index])
        return y

    return build


def many(b: NetworkBuilder, x: Value) -> Value:
    y = x
    for _ in range(1100):
        y = b.add(y, x)
    return y


FAR = [99, 100]
BEYOND = "computes sizes from places that do not exist (convert with"
# What stands between a 6x6x4 image and a dense layer, and what is said of it.
NETWORKS = [
    (two_activations, "op 1 ADD: broadcasts (6, 6, 4) + (3, 3, 4) (two activations must have"),
    (two_activations, "op 2 MUL: has two activations as inputs (only a constant for each channel"),
    (whole_constant, "op 0 ADD: its constant has shape (6, 6, 4) for 4 channels (one value"),
    (
        lambda b, x: b.limit("MAXIMUM", b.conv(x, 4), 127),
        "op 1 MAXIMUM: its constant leaves the single value 127 (remove",
    ),
    (mean_over(1), "op 0 MEAN: reduces axes [1] of shape (1, 6, 6, 4)"),
    (mean_over(3), "op 0 MEAN: reduces axes [3] of shape"),
    (mean_over(0, 1, 2), "op 0 MEAN: reduces axes [0, 1, 2] of shape"),
    (mean_over(1, 9), "op 0 MEAN: reduces axes [1, 9] of shape"),
    (
        lambda b, x: b.batch_to_space(b.space_to_batch(x, 2, (0, 0)), 2, 6, (0, 0)),
        "ops 0-1 (BATCH_TO_SPACE_ND, SPACE_TO_BATCH_ND): this operator has no counterpart here "
        "(only one convolution, VALID and of stride 1, may stand between the two",
    ),
    (
        lambda b, x: b.renamed("TRANSPOSE", b.conv(x, 4), (1, 6, 6, 4), b.integers(0, 2, 1, 3)),
        "op 1 TRANSPOSE: moves values: order [0, 2, 1, 3] for shape (1, 6, 6, 4)",
    ),
    (
        computed_by("FLOOR_DIV"),
        "op 1 FLOOR_DIV: computes sizes in a way that is not known here (convert with",
    ),
    (computed_by("GATHER", FAR), f"op 1 GATHER: {BEYOND}"),
    (computed_by("MUL", FAR), f"op 1 MUL: {BEYOND}"),
    (
        computed_by("STRIDED_SLICE", FAR, FAR, [1], ShrinkAxisMask=1),
        f"op 1 STRIDED_SLICE: {BEYOND}",
    ),
    (
        many,
        "net.tflite: beyond the limits of an image: 1101 ops, an image holds 1024; use a smaller",
    ),
]


@pytest.mark.parametrize(("build", "message"), NETWORKS)
def test_networks(tmp_path, build, message):
    b = NetworkBuilder()
    x = b.image(6, 6, 4)
    assert message in refused(tmp_path, b.bytes(x, b.dense(build(b, x), 2)))


def test_cycles_and_wrong_order(tmp_path):
    b = TfliteBuilder()
    x, y, z = (b.activation(1, 4, 4, 2) for _ in range(3))
    b.op("ADD", [x, z], [y])
    b.op("ADD", [y, y], [z])
    message = refused(tmp_path, b.bytes([x], [z]))
    assert "op 0 ADD: reads tensor 2 before an operator writes it (a cycle, or" in message


@pytest.mark.parametrize(
    ("shapes", "axis", "reason"),
    [
        ([(1, 4, 4, 2), (1, 4, 4, 2)], 1, "joins (1, 4, 4, 2), (1, 4, 4, 2) along axis 1 (only"),
        ([(1, 4, 4, 2), (1, 2, 8, 2)], 3, "joins (1, 4, 4, 2), (1, 2, 8, 2) along axis 3 (only"),
        ([(1, 4, 4, 2)], 4, "axis 4 for shape (1, 4, 4, 2) (the file is damaged)"),
        ([], 3, "input 0 is missing (the file is damaged)"),
    ],
)
def test_concatenations(tmp_path, shapes, axis, reason):
    b = TfliteBuilder()
    x, out = b.activation(1, 4, 4, 2), b.activation(1, 4, 4, 4)
    parts = [x]
    for shape in shapes[1:]:
        b.op("RESHAPE", [x, b.constant(np.array(shape, np.int32))], [y := b.activation(*shape)])
        parts.append(y)
    b.op("CONCATENATION", parts if shapes else [], [out], Axis=axis, FusedActivationFunction=0)
    assert f"CONCATENATION: {reason}" in refused(tmp_path, b.bytes([x], [out]))


NO_STATE = (
    "(pmt trains networks without a state: give it the whole window of time as one input, with "
    "convolutions over it)"
)


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        ("UNIDIRECTIONAL_SEQUENCE_LSTM", NO_STATE),
        ("SVDF", NO_STATE),
        ("CUSTOM ethos-u", "(the file was compiled by Vela; give the .tflite that Vela read)"),
        (
            "CUSTOM edgetpu-custom-op",
            "(the file was compiled for an Edge TPU; give the .tflite that its compiler read)",
        ),
    ],
)
def test_what_other_engines_keep_or_compile(kind, remedy, tmp_path):
    b = TfliteBuilder()
    x, y, z = (b.activation(1, 4, 4, 2) for _ in range(3))
    scratch = b.activation(64, dtype="UINT8")
    b.op(kind, [x, scratch], [y])
    b.op("ELU", [y], [z])
    expected = f"op 0 {kind}: this operator has no counterpart here {remedy}"
    elu = "op 1 ELU: this operator has no counterpart here (use RELU"
    message = refused(tmp_path, b.bytes([x], [z]))
    assert expected in message
    assert elu in message
    # A second input hides none of them.
    message = refused(tmp_path, b.bytes([x, scratch], [z]))
    assert message.startswith("net.tflite: 3 things are not supported: has 2 inputs and 1 outputs")
    assert expected in message
    assert elu in message


def test_several_inputs_and_nothing_to_train(tmp_path):
    b = TfliteBuilder()
    x, y, z = (b.activation(1, 4, 4, 2) for _ in range(3))
    b.op("ADD", [x, y], [z])
    assert "has 2 inputs and 1 outputs, one of each" in refused(tmp_path, b.bytes([x, y], [z]))
    b = TfliteBuilder()
    x, y = b.activation(1, 4, 4, 2), b.activation(1, 4, 4, 2)
    b.op("ADD", [x, x], [y])
    assert "there is no layer with weights (nothing to train)" in refused(
        tmp_path, b.bytes([x], [y])
    )


def test_weights_do_not_outgrow_the_file(tmp_path):
    b = TfliteBuilder()
    x, y = b.activation(1, 8, 8, 2), b.activation(1, 8, 8, 64)
    w = b.constant(ramp(64, 2, 2, 2), scales=[1.0])
    far = {**WINDOW, "DilationHFactor": 254, "DilationWFactor": 254}
    z = b.activation(1, 8, 8, 64)
    wide = b.constant(ramp(64, 2, 2, 64), scales=[1.0])
    b.op("CONV_2D", [x, w], [y], **far)
    b.op("CONV_2D", [y, wide], [z], **far)
    message = refused(tmp_path, b.bytes([x], [z]))
    assert "op 1 CONV_2D: its weights, with zeros for groups and dilation, outgrow the" in message


MOST_BYTES = 48 * 2**20  # 16 MiB of weights, twice while they are made, and the graph


def test_memory_stays_in_the_class_of_the_file(tmp_path):
    generator = np.random.default_rng(5)
    tracemalloc.start()
    try:
        for _ in range(60):
            data = bytearray(generated("mixed"))
            for position in generator.integers(8, len(data) - 4, 3):
                data[position : position + 4] = generator.bytes(4)
            check(TARGETS["tflite"], tmp_path, bytes(data))
        assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    finally:
        tracemalloc.stop()


def one_layer(**changes: object) -> TfliteBuilder:
    b = TfliteBuilder()
    b.activation(1, 4, 4, 2)
    b.activation(1, 4, 4, 2)
    b.constant(np.ones((2, 3, 3, 2), np.int8), scales=[1.0])
    b.op("CONV_2D", [0, 2], [1], Padding=0, StrideH=1, StrideW=1)
    b.tensors[2].update(changes)
    return b


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": bytes(35)}, "a INT8 tensor of shape (2, 3, 3, 2) has 35 bytes, not 36"),
        ({"shape": (2, -3, -3, 2)}, "a INT8 tensor of shape (2, -3, -3, 2) has 36 bytes"),
        ({"shape": (2**31 - 1,) * 8}, "has 36 bytes, not"),
        ({"shape": (1,) * 9}, "9 shape are more than the limit of 8"),
        ({"buffer": 77, "data": None}, "buffer 77 does not exist"),
    ],
)
def test_buffers_that_do_not_fit(changes, message, tmp_path):
    found = refused(tmp_path, one_layer(**changes).bytes([0], [1]))
    assert found.startswith("net.tflite: is damaged or truncated: ")
    assert message in found


def test_a_file_that_is_cut_off_is_refused_in_plain_words(tmp_path):
    assert refused(tmp_path, one_layer().bytes([0], [1])[:200]) == (
        "net.tflite: is damaged or truncated: its 200 bytes are not a whole flatbuffer; copy or "
        "convert it again"
    )


@pytest.mark.parametrize("index", [3, -2, 2**31 - 1])
def test_tensors_that_do_not_exist(tmp_path, index):
    b = one_layer()
    b.op("ADD", [1, index], [1])
    message = f"damaged or truncated: tensor {index} does not exist"
    assert message in refused(tmp_path, b.bytes([0], [1]))


def test_missing_ends_are_refused(tmp_path):
    found = refused(tmp_path, one_layer().bytes([0], [-1]))
    assert "is damaged: its input or output does not exist" in found


def test_a_name_that_all_tensors_share_is_not_copied_for_each(tmp_path):
    """A file of 100 KB whose 2,000 tensors claim one name of 80 KB would make 160 MB."""
    b = Flatbuffer()
    name = b.builder.CreateString("x" * 80_000)
    tensors = [b.table("Tensor", Name=name) for _ in range(2000)]
    graph = b.table("SubGraph", Tensors=b.offsets(tensors))
    buffers = b.offsets([b.table("Buffer")])
    model = b.table("Model", Subgraphs=b.offsets([graph]), Buffers=buffers)
    path = saved(tmp_path, b.finished(model))
    with pytest.raises(ValueError, match="its names and scales claim more bytes than the file"):
        read_file(path)


def test_many_useless_operators_take_no_long_time(tmp_path):
    b = one_layer()
    last = 1
    for _ in range(3000):
        b.op("SOFTMAX", [last], [last := b.activation(1, 4, 4, 2)])
    found = refused(tmp_path, b.bytes([0], [last]))
    assert "ops 1-2984 (SOFTMAX): this operator has no counter" in found
