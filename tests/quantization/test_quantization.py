"""Post-training quantization: batch norms, ranges, scales, and int8 against float."""

import emulator
import numpy as np
import pytest
from float_networks import graph_of
from hypothesis import given, settings
from hypothesis import strategies as st

from pmt.net.image import build_image, read_graph
from pmt.quantization import (
    FloatGraph,
    FloatOp,
    activation_ranges,
    float_activations,
    format_noise,
    integer_activations,
    normalize,
    quantize_graph,
    signal_to_noise,
)


def dense(weights: list[list[float]], bias: list[float] | None = None, **options) -> FloatOp:
    options["bias"] = None if bias is None else np.array(bias, np.float32)
    array = np.array(weights, np.float32)
    return FloatOp("fully_connected", "dense", (0,), 0, weights=array, **options)


def pixels(*values: int) -> np.ndarray:
    """One image of one row, one value a channel."""
    return np.array(values, np.uint8).reshape(1, 1, 1, -1)


def repeated(images: np.ndarray) -> np.ndarray:
    """As many images as calibration takes at the least."""
    return np.concatenate([images] * -(-8 // len(images)))


def every_kind(seed: int, side: int, channels: int) -> FloatGraph:
    """Each op once (convolution with uneven padding at stride 2), random parameters."""
    r = np.random.default_rng(seed)

    def normal(*shape: int) -> np.ndarray:
        return r.normal(0, 0.5, shape).astype(np.float32)

    def layer(kind: str, name: str, source: int, *shape: int, **more) -> FloatOp:
        bias = normal(shape[2] if len(shape) == 3 else shape[0])
        return FloatOp(kind, name, (source,), 0, weights=normal(*shape), bias=bias, **more)

    wide, pair = channels * 2, {"kernel": (2, 2)}
    stride = {"kernel": (3, 3), "stride": (2, 2), "padding": (1, 1, 0, 0), "activation": "relu6"}
    same = {"kernel": (3, 3), "padding": (1, 1, 1, 1)}
    return graph_of(
        (side, side, channels),
        FloatOp("pad", "pad", (0,), 0, padding=(0, 0, 1, 1)),
        layer("conv2d", "conv", 1, 4, 3, 3, channels, **stride),
        layer("depthwise_conv2d", "depthwise", 2, 3, 3, 4, **same),
        FloatOp("add", "add", (2, 3), 0, activation="relu"),
        FloatOp("average_pool", "average", (4,), 0, padding=(0, 0, 1, 1), **pair),
        FloatOp("max_pool", "maximum", (5,), 0, padding=(1, 1, 0, 0), **pair),
        layer("depthwise_conv2d", "multiplier", 6, 1, 1, 4 * wide),
        FloatOp("mean", "mean", (7,), 0),
        FloatOp("reshape", "reshape", (8,), 0),
        FloatOp("fully_connected", "head", (9,), 0, weights=normal(3, 4 * wide)),
        flat=(1, wide, 4),
    )


def random_images(seed: int, count: int, side: int, channels: int) -> np.ndarray:
    shape = (count, side, side, channels)
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def test_parameters_of_one_layer_are_the_hand_computed_ones():
    # Channel 0: largest weight 1.27 -> scale 0.01; channel 1: 0.5 -> 0.5 / 127.
    floating = graph_of((1, 1, 2), dense([[1.27, -0.635], [0.25, 0.5]], [0.1, 0.0]))
    calibration = np.concatenate([pixels(255, 0), pixels(0, 255), pixels(255, 255)])
    quantized = quantize_graph(floating, repeated(calibration))

    (op,) = quantized.ops
    assert op.weights.tolist() == [[127, -64], [64, 127]]  # 63.5 and 63.5 round half to even
    assert op.weight_scales == pytest.approx([0.01, 0.5 / 127], rel=1e-6)
    # 0.1 / (1/255 * 0.01) = 2550
    assert op.bias.tolist() == [2550, 0]
    # Outputs: 1.37, -0.535, 0.735, 0.25, 0.5, 0.75: the range is -0.535 .. 1.37.
    output = quantized.tensors[1]
    assert output.scale == pytest.approx(1.905 / 255, rel=1e-6)
    assert output.zero_point == -56  # -128 + 0.535 / scale = -128 + 71.6
    assert op.clamp == (-128, 127)


def test_the_int8_input_is_the_pixel_minus_128():
    floating = graph_of((1, 1, 1), dense([[1.0]]))
    quantized = quantize_graph(floating, repeated(pixels(10)))
    every_pixel = np.arange(256, dtype=np.uint8).reshape(-1, 1, 1, 1)
    found = integer_activations(quantized, every_pixel)[0].ravel()
    assert found.tolist() == list(range(-128, 128))


def test_the_input_follows_the_pixel_range_with_another_mean_and_spread():
    floating = graph_of((1, 1, 3), dense([[1.0, 1.0, 1.0]]))
    floating.input_mean = (100.0, 100.0, 100.0)
    floating.input_std = (50.0, 50.0, 50.0)
    quantized = quantize_graph(floating, repeated(pixels(90, 90, 90)))
    assert quantized.tensors[0].scale == pytest.approx(1 / 50)
    assert quantized.tensors[0].zero_point == -28
    found = integer_activations(quantized, pixels(0, 100, 255))[0]
    assert found.ravel().tolist() == [-128, -28, 127]


@pytest.mark.parametrize(
    ("activation", "bias", "clamp", "zero_point"),
    [
        # A step below zero tells the output of the network from that of an activation.
        ("none", 0.0, (-128, 127), -127),
        ("relu", 0.0, (-128, 127), -128),
        # Output 0 .. 6: every int8 value is used, and 6 is the greatest.
        ("relu6", 9.0, (-128, 127), -128),
        # Output 0 .. 0.5, and int8 reaches no further.
        ((-0.25, 0.5), 0.0, (-128, 127), -128),
        # Output -2.5 alone, with zero in the range: 127 is zero, and -1.25 half way.
        ((-9.0, -1.25), -3.5, (-128, 0), 127),
    ],
)
def test_activations_become_clamps(activation, bias, clamp, zero_point):
    op = dense([[1.0]], [bias], activation=activation)
    quantized = quantize_graph(graph_of((1, 1, 1), op), repeated(pixels(255)))
    assert quantized.ops[0].clamp == clamp
    assert quantized.tensors[1].zero_point == zero_point


def test_a_clamp_at_both_ends_of_the_output_shows_by_a_step():
    op = dense([[1.0]], [-0.25], activation=(-0.25, 0.5))
    images = np.concatenate([repeated(pixels(0)), repeated(pixels(255))])
    quantized = quantize_graph(graph_of((1, 1, 1), op), images)
    assert quantized.ops[0].clamp == (-127, 126)
    assert quantized.tensors[1].zero_point == -43


def test_an_op_that_is_clipped_to_one_value_is_refused():
    """As ``Min 0`` before a Relu: the core takes no clamp of one value."""
    graph = graph_of((1, 1, 1), dense([[1.0]], activation=(0.5, np.inf)))
    message = r"^'dense' is clipped to \[0\.5, inf\], where its scale 0\.00196 has one step only"
    with pytest.raises(ValueError, match=message):
        quantize_graph(graph, repeated(pixels(1)))


def test_what_relu_cuts_is_exactly_zero():
    op = dense([[1.0], [-1.0]], activation="relu")
    quantized = quantize_graph(graph_of((1, 1, 1), op), repeated(pixels(255)))
    assert quantized.ops[0].clamp[0] == quantized.tensors[1].zero_point == -128
    outputs = integer_activations(quantized, pixels(255))[1]
    assert outputs.ravel().tolist() == [127, -128]


def test_zero_and_tiny_channels_get_scales_that_nothing_overflows():
    op = dense([[0.0], [1.27], [1e-9]], [0.5, 0.0, 100.0])
    quantized = quantize_graph(graph_of((1, 1, 1), op), repeated(pixels(255)))
    layer = quantized.ops[0]
    # The channel of zeros takes the largest scale of the layer.
    assert layer.weight_scales[0] == pytest.approx(0.01)
    assert layer.bias[0] == 12_750  # 0.5 * 255 / 0.01
    # The tiny channel's bias would need 3.2e15 steps of its own scale: it gets 2^23.
    assert layer.bias[2] == pytest.approx(2**23, abs=1)
    real = layer.bias[2] * quantized.tensors[0].scale * layer.weight_scales[2]
    assert real == pytest.approx(100.0, rel=1e-6)


def test_a_layer_of_zeros_and_a_constant_zero_activation_quantize():
    op = dense([[0.0], [0.0]])
    quantized = quantize_graph(graph_of((1, 1, 1), op), repeated(pixels(255)))
    assert quantized.ops[0].weight_scales.tolist() == [1.0, 1.0]
    assert (quantized.tensors[1].scale, quantized.tensors[1].zero_point) == (1.0, 0)
    build_image(quantized)


def test_ranges_are_minimum_and_maximum_and_hold_zero():
    floating = graph_of((1, 1, 1), dense([[2.0], [3.0]], [1.0, 1.0]))
    images = np.concatenate([pixels(0), pixels(255)])
    assert activation_ranges(floating, images) == [(0.0, 1.0), (0.0, 4.0)]


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), side=st.integers(2, 9), channels=st.integers(1, 3))
def test_every_kind_of_op_agrees_with_the_emulator_and_makes_an_image(seed, side, channels):
    floating = every_kind(seed, side, channels)
    images = random_images(seed, 8, side, channels)
    quantized = quantize_graph(floating, images)
    inputs = emulator.quantize_pixels(quantized, images)
    reference = quantize_graph(floating, images)
    for op in reference.ops:
        if op.kind == "fully_connected":
            op.bias = np.zeros(len(op.weights), np.int32)
    expected = emulator.run(reference, inputs)
    for index, values in enumerate(integer_activations(quantized, images)):
        assert np.array_equal(values, expected[index]), quantized.tensors[index].name
    saved = read_graph(build_image(quantized))
    assert [t.scale for t in saved.tensors] == [t.scale for t in quantized.tensors]


def test_int8_stays_within_a_few_steps_of_float():
    floating = every_kind(7, 8, 3)
    images = random_images(7, 64, 8, 3)
    quantized = quantize_graph(floating, images)
    exact = float_activations(floating, normalize(floating, images))[-1]
    output = quantized.tensors[-1]
    found = integer_activations(quantized, images)[-1]
    error = (found.astype(float) - output.zero_point) * output.scale - exact
    assert np.abs(error).max() < 0.06 * np.abs(exact).max()


def test_the_noise_report_names_every_op_and_is_above_25_decibel():
    floating = every_kind(7, 8, 3)
    images = random_images(7, 64, 8, 3)
    report = signal_to_noise(floating, quantize_graph(floating, images), images)
    assert [op.name for op in report] == [op.name for op in floating.ops]
    assert min(op.signal_to_noise for op in report) > 25.0
    table = format_noise(report).splitlines()
    assert table[0].split() == ["op", "kind", "SNR/dB"]
    assert len(table) == len(report) + 1


def test_the_noise_report_is_infinite_without_error_and_sees_broken_weights():
    floating = graph_of((1, 1, 1), FloatOp("reshape", "same", (0,), 0))
    # A pixel of 0 is exactly 0 in both networks.
    (noise,) = signal_to_noise(floating, quantize_graph(floating, repeated(pixels(255))), pixels(0))
    assert noise.signal_to_noise == float("inf")

    layer = graph_of((1, 1, 1), dense([[1.0]]))
    broken = quantize_graph(layer, repeated(pixels(255)))
    broken.ops[0].weights = -broken.ops[0].weights
    (noise,) = signal_to_noise(layer, broken, pixels(255))
    assert noise.signal_to_noise == pytest.approx(0.0, abs=0.1)  # found 0 instead of 1


def _with(change) -> FloatGraph:
    floating = graph_of((1, 1, 1), dense([[1.0]], [0.0]))
    change(floating)
    return floating


def _set(**values):
    return lambda floating: [setattr(floating.ops[0], name, v) for name, v in values.items()]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_set(weights=None), r"op 'dense' \(fully_connected\): weights are missing"),
        (_set(weights=np.ones((2, 1), np.float32)), r"weights have shape \(2, 1\)"),
        (_set(weights=np.ones((1, 1, 1), np.float32)), r"must have 2 axes"),
        (_set(bias=np.ones(2, np.float32)), r"bias has shape \(2,\), but must have \(1,\)"),
        (_set(weights=np.full((1, 1), np.nan, np.float32)), "weights hold a value that is not"),
        (_set(bias=np.full(1, np.inf, np.float32)), "bias hold a value that is not finite"),
        (_set(activation="tanh"), "activation 'tanh' is unknown, use one of 'none', 'relu'"),
        (_set(activation=(1.0, 1.0)), r"activation \(1.0, 1.0\) must be a name or two bounds"),
        (_set(activation=(0.0,)), r"activation \(0.0,\) must be a name or two bounds"),
        (_set(kind="reshape", activation="relu"), "cannot be fused into reshape"),
        (lambda floating: setattr(floating, "input_std", (0.0,)), "input_std .* must not be zero"),
    ],
)
def test_a_graph_that_cannot_be_quantized_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        quantize_graph(_with(change), repeated(pixels(255)))


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.ones((1, 1, 1, 1), np.float32), "images are float32"),
        (np.ones((1, 1, 1), np.uint8), r"of shape \(1, 1, 1\), but the network reads uint8"),
        (np.ones((1, 2, 2, 1), np.uint8), r"images \(N, 1, 1, 1\)"),
        (np.ones((0, 1, 1, 1), np.uint8), "with N at least 1"),
    ],
)
def test_calibration_images_that_do_not_fit_are_refused(images, message):
    with pytest.raises(ValueError, match=message):
        quantize_graph(_with(lambda floating: None), images)


def test_a_noise_report_of_another_network_is_refused():
    floating = every_kind(7, 8, 3)
    other = quantize_graph(_with(lambda floating: None), repeated(pixels(255)))
    with pytest.raises(ValueError, match="1 ops that are not the 10 of float_graph"):
        signal_to_noise(floating, other, random_images(7, 1, 8, 3))
