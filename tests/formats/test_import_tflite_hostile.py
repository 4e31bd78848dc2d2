"""Damaged and hostile .tflite files: one ValueError, and no allocation beyond the file's class."""

import tracemalloc

import numpy as np
import pytest
from fuzz.targets import TARGETS, check
from tflite_builder import TfliteBuilder, refused, saved
from tflite_networks import generated

from pmt.formats.tflite.exporter import Flatbuffer
from pmt.formats.tflite.file import read_file

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
