"""Importer of full-integer ``.tflite`` networks.

Layers round as TFLite's XNNPACK kernels do. TFLite's fixed-point reference kernels and its average
pool, which rounds halves away from zero, give values that differ by at most 1 per layer in a few
percent of them; the predicted class changes only where two logits are nearly equal. How each
operator is lowered is tabled in ``docs/guides/importers.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pmt._util.printable import printable
from pmt.formats.layers import check_limits, layer_blocks, raw_pixels
from pmt.formats.tflite import elementwise, layers, shapes, windows
from pmt.formats.tflite.file import FileModel, Problems, Unsupported, read_file
from pmt.formats.tflite.network import Network, Step, StoredLayer, check_types, is_shape_value
from pmt.formats.tflite.rewrites import Rewritten, readers_of, rewrite
from pmt.net.graph import FEATURES_ENTRY, Graph, check_graph, is_layer

__all__ = ["Lowered", "lower", "read"]

_CONVERTERS: dict[str, Callable[[Step], None]] = {
    "CONV_2D": layers.conv_2d,
    "DEPTHWISE_CONV_2D": layers.depthwise_conv_2d,
    "FULLY_CONNECTED": layers.fully_connected,
    "ADD": elementwise.add,
    "SUB": elementwise.subtract,
    "MUL": elementwise.multiply,
    "QUANTIZE": elementwise.requantize,
    "RELU": partial(elementwise.bounded, low=0.0, high=None),
    "RELU6": partial(elementwise.bounded, low=0.0, high=6.0),
    "RELU_N1_TO_1": partial(elementwise.bounded, low=-1.0, high=1.0),
    "RELU_0_TO_1": partial(elementwise.bounded, low=0.0, high=1.0),
    "MAXIMUM": partial(elementwise.limited, below=True),
    "MINIMUM": partial(elementwise.limited, below=False),
    "AVERAGE_POOL_2D": partial(windows.pool, kind="average_pool"),
    "MAX_POOL_2D": partial(windows.pool, kind="max_pool"),
    "MEAN": windows.mean,
    "REDUCE_MAX": windows.reduce_max,
    "PAD": windows.pad,
    "PADV2": windows.pad,
    "RESHAPE": shapes.reshape,
    "SQUEEZE": shapes.squeeze,
    "EXPAND_DIMS": shapes.expand_dims,
    "TRANSPOSE": shapes.transpose,
}

_USE_RELU = "use RELU or RELU6 in its place and train again"
_USE_ADD = "join branches with ADD"
_CUT = "end the network before it: a feature map is trained as it is"
_AT_THE_ENDS = "it is dropped at the ends of the network only; convert all of it to int8"
_REMEDIES = {
    **dict.fromkeys(
        ("LOGISTIC", "HARD_SWISH", "TANH", "LEAKY_RELU", "PRELU", "ELU", "GELU", "ABS"), _USE_RELU
    ),
    **dict.fromkeys(("CONCATENATION", "SPLIT", "SPLIT_V", "PACK", "UNPACK"), _USE_ADD),
    **dict.fromkeys(
        ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "TRANSPOSE_CONV", "ARG_MAX"), _CUT
    ),
    **dict.fromkeys(("SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION", "DEQUANTIZE"), _AT_THE_ENDS),
    **dict.fromkeys(
        ("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND"),
        "only one convolution, VALID and of stride 1, may stand between the two",
    ),
    **dict.fromkeys(("WHILE", "IF", "CALL_ONCE"), "convert without control flow"),
}
_ELSE = "replace it by operators of the list in docs/guides/importers.md"


@dataclass(frozen=True)
class Lowered:
    """A graph and where its parts stand in the file.

    ``file_tensors`` maps a tensor of the graph to the tensor of the file with the same bytes;
    tensors that lowering added are missing. ``operators`` says which kind of operator made a
    tensor. ``layers`` says where a layer's parameters are stored; layers that lowering added are
    missing.
    """

    graph: Graph
    file_tensors: dict[int, int]
    operators: dict[int, str]
    layers: dict[str, StoredLayer]


def read(
    path: str | Path,
    *,
    input_mean: Sequence[float] | None = None,
    input_std: Sequence[float] | None = None,
) -> Graph:
    """Read a full-integer ``.tflite`` file (int8 activations and weights, int32 biases).

    Parameters
    ----------
    path : str or pathlib.Path
        The file.
    input_mean, input_std : sequence of float, optional
        Per channel, in units of a 0..255 pixel: real input = (pixel - mean) / std. Without them
        the int8 input is pixel - 128; if the file's own input is uint8, that input is the pixel.

    Returns
    -------
    Graph
        QUANTIZE at the start and DEQUANTIZE, QUANTIZE, SOFTMAX and L2_NORMALIZATION at the end are
        dropped (listed under ``dropped_operators`` of the metadata): the output is the logits, or
        the features before they are normalized. Layers are named
        after their weights where those names are short and unique, else ``conv0``, ``depthwise0``,
        ``dense0``. Blocks: ``B1`` to ``B4`` (layers before the head in four consecutive groups),
        ``head`` (the last layer) and ``all``. Layers that the file has no weights for, such as a
        requantization, are in none of them (listed under ``helper_layers``).

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ImportError
        If the package ``tflite`` is missing.
    ValueError
        If the file is damaged, or has operators or options that are not supported: one message
        with every one of them.
    """
    graph = lower(path).graph
    channels = min(graph.tensors[graph.input].channels, 4)
    if input_mean is not None:
        graph.input_mean = _per_channel("input_mean", input_mean, channels)
    if input_std is not None:
        graph.input_std = _per_channel("input_std", input_std, channels)
    _check(graph, Path(path).name)
    return graph


def lower(path: str | Path) -> Lowered:
    """Read a file as :func:`read` does without options, and keep where everything stood."""
    path = Path(path)
    lowered = _Lowering(read_file(path), path.name).run()
    _check(lowered.graph, path.name)
    return lowered


def _check(graph: Graph, source: str) -> None:
    try:
        check_graph(graph)
    except ValueError as error:
        raise ValueError(f"{source}: contradicts itself: {error}") from None
    check_limits(graph, source)


def _per_channel(name: str, values: Sequence[float], channels: int) -> tuple[float, ...]:
    try:
        result = tuple(float(value) for value in values)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name}={values!r}: needs one number for each of {channels} input channels"
        ) from None
    if len(result) != channels:
        raise ValueError(f"{name}={result}: needs one value for each of {channels} input channels")
    return result


class _Lowering:
    """Turns the operators of a file into a graph, collecting everything unsupported."""

    def __init__(self, model: FileModel, source: str) -> None:
        self._model = model
        self._source = source
        self._problems = Problems()

    def run(self) -> Lowered:
        self._check_file()
        if len(self._model.inputs) != 1 or len(self._model.outputs) != 1:
            self._refuse()
        parts = rewrite(self._model)
        network = Network(self._model, readers_of(parts.ops, parts.last))
        self._enter_input(network, parts.first)
        for number, op in parts.ops:
            self._lower(Step(number, op, network))
        self._check_result(network, parts)
        return self._assemble(network, parts)

    def _refuse(self) -> None:
        raise self._problems.error(self._source)

    def _check_file(self) -> None:
        """Note what can be said before any operator is lowered."""
        model = self._model
        if model.subgraphs != 1:
            self._problems.add(
                Unsupported(
                    f"has {model.subgraphs} subgraphs, one is supported",
                    "convert one signature, without control flow",
                )
            )
        if len(model.inputs) != 1 or len(model.outputs) != 1:
            self._problems.add(
                Unsupported(
                    f"has {len(model.inputs)} inputs and {len(model.outputs)} outputs, one of "
                    "each is supported",
                    "convert a model from one image to one vector of logits or one feature map",
                )
            )
        elif min(*model.inputs, *model.outputs) < 0:
            raise ValueError(f"{self._source}: is damaged: its input or output does not exist")

    def _enter_input(self, network: Network, first: int) -> None:
        tensor = self._model.tensors[first]
        batch = (tensor.signature or tensor.shape)[:1]
        shape = (1, *tensor.shape[1:]) if batch == (-1,) else tensor.shape
        try:
            if len(shape) > 1 and shape[0] != 1:
                raise Unsupported(
                    f"its input has batch size {shape[0]}", "convert with batch size 1 or None"
                )
            if tensor.is_dynamic or -1 in shape:
                raise Unsupported(
                    f"its input has the open shape {tensor.signature or shape}",
                    "convert with a fixed height and width",
                )
            if tensor.dtype == "INT8":  # else every operator that reads it says so
                network.enter(first, shape)
        except Unsupported as problem:
            self._problems.add(problem)

    def _lower(self, step: Step) -> None:
        """Convert one operator; what it writes exists even if that fails: one problem, not two."""
        failed = False
        for check in (_check_kind, lambda s: check_types(s.op, self._model)):
            try:
                check(step)
            except Unsupported as problem:
                self._problems.add(problem, step.number, step.op.kind)
                failed = True
        try:
            if not failed and not self._reads_what_failed(step):
                _convert(step)
        except Unsupported as problem:
            self._problems.add(problem, step.number, step.op.kind)
            failed = True
        if failed:
            self._stand_in(step)

    def _reads_what_failed(self, step: Step) -> bool:
        """Whether an input is missing because of a problem that is already noted."""
        network = step.network
        activations = [i for i in step.op.inputs if i >= 0 and not self._model.is_constant(i)]
        known = (*network.index, *network.sizes) if self._problems else ()
        return bool(self._problems) and not all(i in known for i in activations)

    def _stand_in(self, step: Step) -> None:
        tensor = self._model.tensors[step.op.outputs[0]] if step.op.outputs else None
        if tensor is None or is_shape_value(tensor) or step.output in step.network.index:
            return
        try:
            step.network.enter(step.output, (1, *tensor.shape[1:]))
        except Unsupported:
            return

    def _check_result(self, network: Network, parts: Rewritten) -> None:
        if not self._problems and parts.last not in network.index:
            self._problems.add(
                Unsupported("no operator writes the output from the input", "the file is damaged")
            )
        if not self._problems and not network.layers:
            self._problems.add(Unsupported("there is no layer with weights", "nothing to train"))
        if self._problems:
            self._refuse()

    def _assemble(self, network: Network, parts: Rewritten) -> Lowered:
        trained = [
            i for i, op in enumerate(network.ops) if is_layer(op) and op.name in network.layers
        ]
        source = network.tensors[0]
        channels = min(source.channels, 4)
        mean, std = raw_pixels(source.scale, source.zero_point, channels)
        if parts.pixels is not None:
            scale, zero_point = parts.pixels
            mean, std = (float(zero_point),) * channels, (1.0 / scale,) * channels
        metadata: dict[str, Any] = {
            "source": f"tflite {printable(self._source)}",
            "dropped_operators": [
                f"op {number} {self._model.ops[number].kind}" for number in sorted(parts.dropped)
            ],
        }
        if network.helpers:
            metadata["helper_layers"] = [
                op.name for op in network.ops if op.name in network.helpers
            ]
        if any(self._model.ops[number].kind == "L2_NORMALIZATION" for number in parts.dropped):
            metadata.update(FEATURES_ENTRY)  # an embedding
        graph = Graph(
            tensors=network.tensors,
            ops=network.ops,
            input=0,
            output=network.index[parts.last],
            input_mean=mean,
            input_std=std,
            blocks=layer_blocks(trained),
            metadata=metadata,
        )
        places = {
            index: tensor
            for tensor, index in network.index.items()
            if tensor not in network.absorbed
        }
        return Lowered(graph, places, network.operators, network.layers)


def _check_kind(step: Step) -> None:
    """Raise Unsupported if nothing is known of the operator's kind, or it has several outputs."""
    if len(step.op.outputs) != 1 or step.output < 0:
        raise Unsupported(f"has {len(step.op.outputs)} outputs", "operators with one are imported")
    sizes = is_shape_value(step.network.model.tensors[step.output])
    if step.op.kind not in _CONVERTERS and not sizes:
        raise Unsupported(
            "this operator has no counterpart here", _REMEDIES.get(step.op.kind, _ELSE)
        )


def _convert(step: Step) -> None:
    """Append what an operator computes to the network."""
    if is_shape_value(step.network.model.tensors[step.output]):
        shapes.evaluate_sizes(step)
    else:
        _CONVERTERS[step.op.kind](step)
