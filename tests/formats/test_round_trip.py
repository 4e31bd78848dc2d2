"""Whatever pmt writes, pmt reads: the same bytes are computed after every format."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from drawn_graphs import drawn_graph
from hypothesis import example, given, settings
from hypothesis import strategies as st
from networks import (
    chain,
    drawn_parameters,
    every_op,
    model_of,
    residual_network,
    smooth_network,
    window_network,
)
from written_files import graph_of_arrays, graph_of_c

import pmt
from pmt import formats
from pmt.formats.layers import UNIT_WEIGHT
from pmt.formats.onnx.exporter import onnx_model
from pmt.model import Model
from pmt.net.graph import Op, Tensor

pytest.importorskip("onnx")
pytest.importorskip("tflite")


def joined_vectors() -> Model:
    """Maps that are flattened, reshaped, and joined as vectors and as a sequence."""
    rng = np.random.default_rng(0)
    sizes = {"image": (4, 4, 2), "flat": (1, 1, 32), "both": (1, 1, 64), "rows": (1, 32, 2)}
    sizes |= {"four": (1, 32, 4), "logits": (1, 1, 3)}
    tensors = [Tensor(name, *size, 1 / 64, -5) for name, size in sizes.items()]
    ops = [
        Op("reshape", "flat", (0,), 1),
        Op("concatenation", "both", (1, 1), 2),
        Op("reshape", "rows", (2,), 3),
        Op("concatenation", "four", (3, 3), 4),
        Op("fully_connected", "head", (4,), 5, **drawn_parameters(rng, (3, 128))),
    ]
    return model_of(tensors, ops, {"all": [4]})


NETWORKS: dict[str, Callable[[], Model]] = {
    "residual": residual_network,
    "smooth": smooth_network,
    "every op": every_op,
    "chain": chain,
    "window": window_network,
    "joined vectors": joined_vectors,
    **{name: lambda name=name: pmt.load(name) for name in pmt.model.loading.BUNDLED_MODELS},
}


# How a written file is read again, where no importer does it.
READERS = {".npz": graph_of_arrays, ".h": graph_of_c}


def check(model: Model, path: Path, *, with_units: bool = False) -> None:
    """The file that was written gives the model's inputs, logits and trained layers.

    With `with_units` the importer may have put layers of unit weights behind concatenations.
    """
    again = Model.from_graph(READERS.get(path.suffix, formats.read)(path))
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (8, *model.input_shape)).astype(np.uint8)
    inputs = rng.integers(-128, 128, images.shape).astype(np.int8)
    if model.input_shape[2] <= 4:
        assert again.prepare(images).tobytes() == model.prepare(images).tobytes()
    assert again.core.logits(inputs).tobytes() == model.core.logits(inputs).tobytes()
    assert again.core.input_shape == model.core.input_shape
    assert again.class_names == model.class_names
    assert again.name == model.name
    # Values of a bias may differ: one so low that no sum matters is moved from where it could wrap.
    weights = [[m.weights(layer.index) for layer in m.layers] for m in (again, model)]
    if with_units:
        graph = model.to_graph()
        joined = {graph.tensors[o.output].channels for o in graph.ops if o.kind == "concatenation"}
        unit = [(np.abs(w) == UNIT_WEIGHT).all() and w.size in joined for w in weights[0]]
        weights[0] = [w for w, is_unit in zip(weights[0], unit, strict=True) if not is_unit]
    assert [w.size for w in weights[0]] == [w.size for w in weights[1]]


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("suffix", formats.SUFFIXES)
def test_networks(suffix, network, tmp_path):
    model = NETWORKS[network]()
    path = tmp_path / f"net{suffix}"
    model.save(path)
    check(model, path)


@pytest.mark.parametrize("suffix", formats.SUFFIXES)
def test_networks_of_others(suffix, mcunet_path, resnet8_path, tmp_path):
    for source in (mcunet_path, resnet8_path):
        model = pmt.load(source)
        path = tmp_path / f"{source.stem}{suffix}"
        model.save(path)
        check(model, path)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from(formats.SUFFIXES))
@example(90, False, ".onnx")  # an activation is added to one that was reshaped
def test_drawn_networks(tmp_path_factory, seed, plain, suffix):
    model = Model.from_graph(drawn_graph(seed, plain=plain, tflite=suffix == ".tflite"))
    path = tmp_path_factory.getbasetemp() / f"drawn{suffix}"
    model.save(path)
    check(model, path)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32 - 1))
@example(7760699)  # a concatenation of another one, reshaped, and its clamp
def test_drawn_networks_of_unsigned_activations(tmp_path_factory, seed):
    model = Model.from_graph(drawn_graph(seed))
    path = tmp_path_factory.getbasetemp() / "drawn.onnx"
    path.write_bytes(onnx_model(model.to_graph(), unsigned=True))
    check(model, path, with_units=True)
