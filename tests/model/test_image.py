import json
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmt import _core
from pmt.net.graph import Graph, Op, Tensor
from pmt.net.image import build_image, read_graph


def small_graph() -> Graph:
    """conv 3x3 stride 2, depthwise 3x3, add, mean, fully connected."""
    ramp = np.arange(108) % 255 - 127
    tensors = [
        Tensor("input", 6, 6, 3, 0.5, -3),
        Tensor("conv", 3, 3, 4, 0.25, -128),
        Tensor("depthwise", 3, 3, 4, 0.125, 7),
        Tensor("sum", 3, 3, 4, 0.5, 0),
        Tensor("mean", 1, 1, 4, 0.5, 0),
        Tensor("logits", 1, 1, 2, 1.0, 0),
    ]
    ops = [
        Op(
            "conv2d",
            "conv",
            (0,),
            1,
            kernel=(3, 3),
            stride=(2, 2),
            padding=(0, 0, 1, 1),
            clamp=(-128, 100),
            weights=ramp.reshape(4, 3, 3, 3).astype(np.int8),
            bias=np.array([1, -2, 2**31 - 1, -(2**31)], np.int32),
            weight_scales=np.array([0.5, 0.25, 4e-9, 1.0], np.float32),
        ),
        Op(
            "depthwise_conv2d",
            "depthwise",
            (1,),
            2,
            kernel=(3, 3),
            padding=(1, 1, 1, 1),
            weights=ramp[:36].reshape(3, 3, 4).astype(np.int8),
            weight_scales=np.full(4, 0.1, np.float32),
        ),
        Op("add", "sum", (1, 2), 3),
        Op("mean", "mean", (3,), 4),
        Op(
            "fully_connected",
            "head",
            (4,),
            5,
            weights=ramp[:8].reshape(2, 4).astype(np.int8),
            bias=np.zeros(2, np.int32),
            weight_scales=np.ones(2, np.float32),
        ),
    ]
    return Graph(
        tensors,
        ops,
        input=0,
        output=5,
        input_mean=(128.0, 127.0, 126.0),
        input_std=(2.0, 3.0, 4.0),
        blocks={"B1": [0, 1], "head": [4]},
        metadata={"z": 1, "class_names": ["é", "b"]},
    )


def with_crc(image: bytes) -> bytes:
    """The same image with a CRC-32 that fits its bytes."""
    return image[:12] + struct.pack("<I", zlib.crc32(image[16:])) + image[16:]


def test_header_and_sections_lie_where_the_format_says():
    image = build_image(small_graph())
    magic, version, total, crc = struct.unpack_from("<4s3I", image)
    assert (magic, version, total) == (b"PMTI", 1, len(image))
    assert crc == zlib.crc32(image[16:])
    table = struct.unpack_from("<14I", image, 16)
    assert table[1::2][:4] == (6, 5, 2, 3)  # tensors, ops, blocks, layers of blocks
    assert all(offset % 16 == 0 for offset in table[0::2])
    assert table[0] == 128
    assert struct.unpack_from("<2I", image, 72) == (0, 5)
    assert struct.unpack_from("<8f", image, 80) == (128, 127, 126, 0, 2, 3, 4, 1)
    assert image[112:128] == bytes(16)
    kind, _name, first, second, output, *numbers = struct.unpack_from("<5I10i3I", image, table[2])
    assert (kind, first, second, output) == (1, 0, 0xFFFFFFFF, 1)
    assert numbers[:10] == [3, 3, 2, 2, 0, 0, 1, 1, -128, 100]
    weights, bias, scales = numbers[10:]
    assert (weights, bias, scales) == (0, 112, 128)
    data = table[12]
    assert np.frombuffer(image, np.int8, 3, data + weights).tolist() == [-127, -126, -125]
    stored_bias = np.frombuffer(image, "<i4", 4, data + bias)
    assert stored_bias.tolist() == [1, -2, 2147483647, -2147483648]
    assert np.frombuffer(image, "<f4", 1, data + scales).tolist() == [0.5]
    metadata = image[table[10] : table[10] + table[11]]
    assert metadata == '{"class_names":["é","b"],"z":1}'.encode()
    assert json.loads(metadata)["z"] == 1


def test_op_without_weights_has_no_offsets():
    image = build_image(small_graph())
    ops = struct.unpack_from("<I", image, 24)[0]
    fields = struct.unpack_from("<5I10i3I", image, ops + 2 * 72)
    assert fields[0] == 4
    assert fields[2:5] == (1, 2, 3)
    assert fields[15:] == (0xFFFFFFFF,) * 3


def test_reading_gives_the_graph_back():
    graph = small_graph()
    back = read_graph(build_image(graph))
    assert back.tensors == graph.tensors
    assert (back.input, back.output) == (0, 5)
    assert (back.input_mean, back.input_std) == (graph.input_mean, graph.input_std)
    assert back.blocks == graph.blocks
    assert back.metadata == graph.metadata
    for op, same in zip(graph.ops, back.ops, strict=True):
        assert (op.kind, op.name, op.inputs, op.output) == (
            same.kind,
            same.name,
            same.inputs,
            same.output,
        )
        assert (op.kernel, op.stride, op.padding, op.clamp) == (
            same.kernel,
            same.stride,
            same.padding,
            same.clamp,
        )
        if op.weights is not None:
            assert same.weights is not None
            assert same.weights.dtype == np.int8
            np.testing.assert_array_equal(same.weights, op.weights)
            np.testing.assert_array_equal(same.weight_scales, op.weight_scales)
    assert back.ops[1].bias is not None
    assert back.ops[1].bias.tolist() == [0, 0, 0, 0]


def test_bytes_do_not_depend_on_the_order_of_metadata():
    graph, other = small_graph(), small_graph()
    other.metadata = dict(reversed(list(graph.metadata.items())))
    assert build_image(graph) == build_image(other)


def test_equal_graphs_read_back_give_equal_bytes():
    image = build_image(small_graph())
    assert build_image(read_graph(image)) == image


@settings(max_examples=40, deadline=None)
@given(
    height=st.integers(1, 9),
    width=st.integers(1, 9),
    channels=st.integers(1, 5),
    out=st.integers(1, 5),
    kernel=st.integers(1, 3),
    stride=st.integers(1, 3),
    seed=st.integers(0, 2**31),
)
def test_any_convolution_survives_the_round_trip(
    height, width, channels, out, kernel, stride, seed
):
    generator = np.random.default_rng(seed)
    before = kernel - 1
    rows = (height + 2 * before - kernel) // stride + 1
    columns = (width + before - kernel) // stride + 1
    weights = generator.integers(-128, 128, (out, kernel, kernel, channels)).astype(np.int8)
    bias = generator.integers(-(2**31), 2**31, out).astype(np.int32)
    scales = generator.uniform(1e-9, 1, out).astype(np.float32)
    graph = Graph(
        [Tensor("x", height, width, channels, 1.0, 0), Tensor("y", rows, columns, out, 2.0, 1)],
        [
            Op(
                "conv2d",
                "layer",
                (0,),
                1,
                kernel=(kernel, kernel),
                stride=(stride, stride),
                padding=(before, before, before, 0),
                weights=weights,
                bias=bias,
                weight_scales=scales,
            )
        ],
        0,
        1,
        (0.0,) * min(channels, 4),
        (1.0,) * min(channels, 4),
    )
    layer = read_graph(build_image(graph)).ops[0]
    np.testing.assert_array_equal(layer.weights, weights)
    np.testing.assert_array_equal(layer.bias, bias)
    np.testing.assert_array_equal(layer.weight_scales, scales)


def wrong_dtype(graph: Graph) -> None:
    graph.ops[0].weights = graph.ops[0].weights.astype(np.int16)  # type: ignore[union-attr]


def wrong_shape(graph: Graph) -> None:
    graph.ops[0].weights = graph.ops[0].weights[:, :2]  # type: ignore[index]


def missing_weights(graph: Graph) -> None:
    graph.ops[1].weights = None


def float_bias(graph: Graph) -> None:
    graph.ops[0].bias = np.zeros(4, np.float32)  # type: ignore[assignment]


def zero_scale(graph: Graph) -> None:
    graph.ops[0].weight_scales = np.zeros(4, np.float32)


def wrong_output_size(graph: Graph) -> None:
    graph.ops[0].stride = (1, 1)


def read_before_written(graph: Graph) -> None:
    graph.ops[0].inputs = (3,)


def same_name(graph: Graph) -> None:
    graph.ops[1].name = "conv"


def wide_clamp(graph: Graph) -> None:
    graph.ops[0].clamp = (-129, 127)


def block_of_no_layer(graph: Graph) -> None:
    graph.blocks["B2"] = [2]


def not_json(graph: Graph) -> None:
    graph.metadata["when"] = object()


def not_a_number(graph: Graph) -> None:
    graph.metadata["loss"] = float("nan")


def infinite_tensor_scale(graph: Graph) -> None:
    graph.tensors[1] = Tensor("conv", 3, 3, 4, float("inf"), 0)


def window_of_a_mean(graph: Graph) -> None:
    next(op for op in graph.ops if op.kind == "mean").kernel = (2, 1)


def padded_mean(graph: Graph) -> None:
    next(op for op in graph.ops if op.kind == "mean").padding = (0, 0, 1, 0)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (wrong_dtype, r"op 'conv' \(conv2d\): weights are int16, not int8"),
        (wrong_shape, r"op 'conv' .*weights have shape \(4, 2, 3, 3\), not \(4, 3, 3, 3\)"),
        (missing_weights, r"op 'depthwise' .*weights are missing"),
        (float_bias, r"op 'conv' .*bias are float32, not int32"),
        (zero_scale, r"op 'conv' .*weight_scales must be positive"),
        (wrong_output_size, r"op 'conv' .*output shape \(3, 3, 4\) .* gives \(5, 5, 4\)"),
        (read_before_written, r"op 'conv' .*reads tensor 3 before"),
        (same_name, r"op 'conv' .*name is taken"),
        (wide_clamp, r"op 'conv' .*clamp \(-129, 127\)"),
        (block_of_no_layer, r"block 'B2'.*ops with weights"),
        (not_json, r"metadata: must hold only what JSON can"),
        (not_a_number, r"metadata: must hold only what JSON can"),
        (
            window_of_a_mean,
            r"op 'mean' \(mean\): kernel \(2, 1\) and stride \(1, 1\) must be \(1, 1\), "
            r"the op has no window$",
        ),
        (
            padded_mean,
            r"op 'mean' \(mean\): padding \(0, 0, 1, 0\) must be zero, the op pads nothing$",
        ),
        (infinite_tensor_scale, r"tensor 1 \('conv'\): scale inf"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_contradictions_are_refused_by_name(damage, message):  # type: ignore[no-untyped-def]
    graph = small_graph()
    damage(graph)
    with pytest.raises(ValueError, match=message):
        build_image(graph)


def test_truncated_image_is_refused_at_every_length():
    image = build_image(small_graph())
    for length in range(0, len(image), 7):
        with pytest.raises(ValueError, match=r"^image: .*truncated"):
            read_graph(image[:length])


def test_appended_bytes_are_refused():
    with pytest.raises(ValueError, match="something appended"):
        read_graph(build_image(small_graph()) + b"\0")


def test_magic_and_version_are_checked():
    image = build_image(small_graph())
    with pytest.raises(ValueError, match=r"starts with b'XMTI', not b'PMTI'"):
        read_graph(b"X" + image[1:])
    with pytest.raises(ValueError, match="version 3, this pmt reads 1 and 2"):
        read_graph(image[:4] + struct.pack("<I", 3) + image[8:])
    with pytest.raises(ValueError, match="an image of version 2 has no input stage"):
        read_graph(image[:4] + struct.pack("<I", 2) + image[8:])


def test_every_flipped_bit_is_found():
    image = build_image(small_graph())
    for position in range(12, len(image), 5):
        damaged = bytearray(image)
        damaged[position] ^= 1 << position % 8
        with pytest.raises(ValueError, match=r"^image: CRC-32 is"):
            read_graph(bytes(damaged))


def test_wild_records_with_a_fitting_crc_give_one_error():
    image = build_image(small_graph())
    generator = np.random.default_rng(5)
    refused = 0
    for _ in range(600):
        damaged = bytearray(image)
        position = int(generator.integers(16, len(image) // 4)) & ~3
        damaged[position : position + 4] = generator.bytes(4)
        try:
            read_graph(with_crc(bytes(damaged)))
        except ValueError as error:
            assert str(error).startswith("image: ")  # noqa: PT017
            refused += 1
    assert refused > 300


@pytest.mark.parametrize("op", ["sum", "mean", "head"])
@pytest.mark.parametrize("field", range(20, 52, 4), ids=lambda at: f"byte {at}")
@pytest.mark.parametrize("value", [-1, 2])
def test_ops_without_a_window_have_none_in_a_hostile_image(op, field, value):
    graph = small_graph()
    image = bytearray(build_image(graph))
    index = [each.name for each in graph.ops].index(op)
    (ops,) = struct.unpack_from("<I", image, 24)
    struct.pack_into("<i", image, ops + 72 * index + field, value)
    hostile = with_crc(bytes(image))
    with pytest.raises(ValueError, match=rf"do not give the output's shape \(index {index}\)$"):
        _core.Model(hostile)
    with pytest.raises(ValueError, match=rf"^image: .*op '{op}' \(\w+\): "):
        read_graph(hostile)
