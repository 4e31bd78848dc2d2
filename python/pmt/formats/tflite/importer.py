"""Importer of full-integer ``.tflite`` networks: ends are dropped, dilation folded, ops lowered.

Layers round as TFLite's XNNPACK kernels do. TFLite's fixed-point reference kernels and its average
pool, which rounds halves away from zero, give values that differ by at most 1 per layer in a few
percent of them; the predicted class changes only where two logits are nearly equal. How each
operator is lowered is tabled in ``docs/guides/importers.md``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from pmt._util.text import printable
from pmt.formats.layers import (
    NO_STATE,
    Problems,
    Unsupported,
    check_imported,
    check_limits,
    layer_blocks,
    settle_ties,
)
from pmt.formats.notes import noted_metadata
from pmt.formats.tflite import channels_first, elementwise, windows
from pmt.formats.tflite.file import FileModel, FileOp, FileTensor, place, read_file
from pmt.formats.tflite.network import Network, Step, StoredLayer, check_types, is_shape_value
from pmt.formats.tflite.windows import VALID
from pmt.net.graph import FEATURES_ENTRY, Graph, is_layer
from pmt.net.pixels import Numbers, PixelFormula, pixel_formula

_MOST_ENDS = 16  # operators dropped at either end
# Operators after the logits or the embedding; an ARG_MAX may be cast.
_ENDS = (
    *("SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION", "LOGISTIC", "TANH", "ARG_MAX", "CAST"),
    *("DEQUANTIZE", "QUANTIZE"),
)
# They go where one of those stands before them: nothing else of them is left.
_IDENTITIES = ("RESHAPE", "SQUEEZE", "EXPAND_DIMS", "IDENTITY", "SPLIT", "SPLIT_V")
RENAMING = ("RESHAPE", "EXPAND_DIMS", "SQUEEZE")
_CHANNELS_LAST = [0, 2, 3, 1]

_CONVERTERS = {**elementwise.CONVERTERS, **windows.CONVERTERS}

_REMEDIES = {
    kind: remedy
    for remedy, kinds in {
        "use RELU or RELU6 in its place and train again": (
            "LOGISTIC HARD_SWISH TANH LEAKY_RELU PRELU ELU GELU ABS"
        ),
        "join branches with ADD or CONCATENATION": "SPLIT SPLIT_V PACK UNPACK",
        "end the network before it: a feature map is trained as it is": (
            "RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR TRANSPOSE_CONV ARG_MAX"
        ),
        "it is dropped at the ends of the network only; convert all of it to int8": (
            "SOFTMAX LOG_SOFTMAX L2_NORMALIZATION DEQUANTIZE"
        ),
        "only one convolution, VALID and of stride 1, may stand between the two": (
            "SPACE_TO_BATCH_ND BATCH_TO_SPACE_ND"
        ),
        "convert without control flow": "WHILE IF CALL_ONCE",
        NO_STATE: (
            "LSTM RNN SVDF UNIDIRECTIONAL_SEQUENCE_LSTM UNIDIRECTIONAL_SEQUENCE_RNN "
            "BIDIRECTIONAL_SEQUENCE_LSTM BIDIRECTIONAL_SEQUENCE_RNN VAR_HANDLE READ_VARIABLE "
            "ASSIGN_VARIABLE"
        ),
    }.items()
    for kind in kinds.split()
} | {
    "CUSTOM ethos-u": "the file was compiled by Vela; give the .tflite that Vela read",
    "CUSTOM edgetpu-custom-op": (
        "the file was compiled for an Edge TPU; give the .tflite that its compiler read"
    ),
}
_ELSE = "replace it by operators of the list in docs/guides/importers.md"


@dataclass(frozen=True)
class Lowered:
    """A graph and where its parts stand in the file.

    ``file_tensors`` maps a tensor of the graph to the tensor of the file with the same bytes;
    tensors that lowering added are missing. ``layers`` says where a layer's parameters are stored;
    layers that lowering added are missing.
    """

    graph: Graph
    file_tensors: dict[int, int]
    layers: dict[str, StoredLayer]


def read(path: str | Path, *, input_mean: Numbers = None, input_std: Numbers = None) -> Graph:
    """Read a full-integer ``.tflite`` file (int8 activations and weights, int32 biases).

    ``input_mean`` and ``input_std`` are one number or one per channel, in units of a 0..255 pixel:
    real input = (pixel - mean) / std. With one, the other is mean 0 or std 255. With neither, the
    usual ones whose range the input's scale and zero point cover, see
    :func:`pmt.net.pixels.pixel_formula`; if the file's own input is uint8, that input is the pixel.

    QUANTIZE at the start and DEQUANTIZE, QUANTIZE, SOFTMAX, LOGISTIC, TANH, ARG_MAX and
    L2_NORMALIZATION at the end are dropped (``dropped_operators`` of the metadata): the output is
    the logits, or the features before they are normalized. Layers are named after their weights
    where those names are short and unique, else ``conv0``, ``depthwise0``, ``dense0``. Layers that
    the file has no weights for, such as a requantization, are in no block (``helper_layers``).

    One ValueError names all operators and options that are not supported.
    """
    graph = lower(path).graph
    if input_mean is None and input_std is None:
        return graph
    pixels = pixel_formula(graph.tensors, input_mean, input_std)
    return replace(
        graph, input_mean=pixels.mean, input_std=pixels.std, pixels_assumed=pixels.assumed
    )


def lower(path: str | Path) -> Lowered:
    """Read a file as :func:`read` does without options, and keep where everything stood."""
    path = Path(path)
    lowered = _Lowering(read_file(path), path.name).run()
    check_imported(lowered.graph, path.name)
    check_limits(lowered.graph, path.name)
    graph = lowered.graph
    settle_ties((op for op in graph.ops if op.name not in lowered.layers), graph.tensors)
    return lowered


class _Lowering:
    """Turns the operators of a file into a graph, collecting everything unsupported."""

    def __init__(self, model: FileModel, source: str) -> None:
        self._model = model
        self._source = source
        self._problems = Problems("{} ({})", place)

    def run(self) -> Lowered:
        self._check_file()
        if len(self._model.inputs) != 1 or len(self._model.outputs) != 1:
            # It cannot be lowered at all, but operators of unknown kinds are named, too.
            nothing = Network(self._model, {})
            for op in self._model.ops:
                self._try(_check_kind, Step(op, nothing))
            raise self._problems.error(self._source)
        parts = rewrite(self._model)
        network = Network(self._model, readers_of(parts.ops, parts.last))
        self._enter_input(network, parts.first)
        for op in parts.ops:
            step = Step(op, network)
            if not self._try(self._lower, step):
                self._stand_in(step)
        self._check_result(network, parts.last)
        return self._assemble(network, parts)

    def _try(self, convert: Callable[[Step], None], step: Step) -> bool:
        """Note why an operator is not supported; return whether it is."""
        try:
            convert(step)
        except Unsupported as problem:
            self._problems.add(problem, operator=step.op)
            return False
        return True

    def _check_file(self) -> None:
        """Note the problems that show before any operator is lowered."""
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
        _check_kind(step)
        check_types(step.op, self._model)
        if not self._reads_what_failed(step):
            self._converter(step)(step)

    def _converter(self, step: Step) -> Callable[[Step], None]:
        if is_shape_value(self._model.tensors[step.output]):
            return elementwise.evaluate_sizes
        if any(tensor in step.network.channels_first for tensor in step.op.inputs):
            return channels_first.converter(step)
        return _CONVERTERS[step.op.kind]

    def _reads_what_failed(self, step: Step) -> bool:
        """Whether an input is missing because of a problem that is already noted."""
        known = (*step.network.index, *step.network.sizes)
        activations = [i for i in step.op.inputs if i >= 0 and not self._model.is_constant(i)]
        return bool(self._problems) and not all(i in known for i in activations)

    def _stand_in(self, step: Step) -> None:
        """Let the output exist although the operator has failed: one problem is told once."""
        tensor = self._model.tensors[step.op.outputs[0]] if step.op.outputs else None
        if tensor is None or is_shape_value(tensor) or step.output in step.network.index:
            return
        with suppress(Unsupported):
            step.network.enter(step.output, (1, *tensor.shape[1:]))

    def _check_result(self, network: Network, last: int) -> None:
        problem = None
        if last not in network.index:
            problem = Unsupported(
                "no operator writes the output from the input", "the file is damaged"
            )
        elif last in network.channels_first:
            problem = Unsupported(
                "its output is a map whose channels come first", channels_first.REMEDY
            )
        elif not network.layers:
            problem = Unsupported("there is no layer with weights", "nothing to train")
        if problem and not self._problems:
            self._problems.add(problem)
        if self._problems:
            raise self._problems.error(self._source)

    def _assemble(self, network: Network, parts: Rewritten) -> Lowered:
        layers = [i for i, op in enumerate(network.ops) if is_layer(op)]
        trained = [i for i in layers if network.ops[i].name in network.layers]
        pixels = pixel_formula(network.tensors, note=self._model.note)
        if parts.pixels is not None:
            scale, zero_point = parts.pixels
            channels = len(pixels.mean)
            pixels = PixelFormula((float(zero_point),) * channels, (1.0 / scale,) * channels)
        dropped = sorted(parts.dropped, key=lambda op: op.number)
        metadata: dict[str, Any] = {
            **noted_metadata(self._model.note),
            "source": f"tflite {printable(self._source)}",
            "dropped_operators": [f"op {op.number} {op.kind}" for op in dropped],
        }
        if len(trained) < len(layers):
            helpers = [network.ops[i].name for i in layers if i not in trained]
            metadata["helper_layers"] = helpers
        if any(op.kind == "L2_NORMALIZATION" for op in dropped):
            metadata.update(FEATURES_ENTRY)  # an embedding
        graph = Graph(
            tensors=network.tensors,
            ops=network.ops,
            input=0,
            output=network.index[parts.last],
            input_mean=pixels.mean,
            input_std=pixels.std,
            pixels_assumed=pixels.assumed,
            blocks=layer_blocks(trained),
            metadata=metadata,
        )
        own = (tensor for tensor in network.index if tensor not in network.absorbed)
        places = {network.index[tensor]: tensor for tensor in own}
        return Lowered(graph, places, network.layers)


def _check_kind(step: Step) -> None:
    """Raise Unsupported if nothing is known of the operator's kind, or it has several outputs."""
    if len(step.op.outputs) != 1 or step.output < 0:
        raise Unsupported(f"has {len(step.op.outputs)} outputs", "operators with one are imported")
    sizes = is_shape_value(step.network.model.tensors[step.output])
    if step.op.kind not in _CONVERTERS and not sizes:
        remedy = _REMEDIES.get(step.op.kind, _ELSE)
        raise Unsupported("this operator has no counterpart here", remedy)


@dataclass
class Rewritten:
    """The operators to lower.

    ``first`` and ``last`` are the tensors where they start and end, ``dropped`` the operators
    before and after; ``pixels`` is scale and zero point of a uint8 input, whose values are pixels.
    """

    ops: list[FileOp]
    first: int
    last: int
    dropped: list[FileOp] = field(default_factory=list)
    pixels: tuple[float, int] | None = None

    def drop(self, op: FileOp) -> None:
        """Leave out an operator at an end."""
        self.dropped.append(op)
        self.ops.remove(op)


def rewrite(model: FileModel) -> Rewritten:
    """Drop the ends and all that the output does not depend on; fold dilation."""
    result = Rewritten(list(model.ops), model.inputs[0], model.outputs[0])
    _drop_start(model, result)
    first = model.tensors[result.first]
    if result.pixels is None and first.is_unsigned and len(first.scales) == 1:
        result.pixels = _uint8_pixels(first)
    _drop_end(result)
    _drop_unneeded(result)
    _fold_dilation(model, result)
    return result


def readers_of(ops: list[FileOp], last: int) -> dict[int, list[FileOp]]:
    """Return who reads each tensor; the output of the network counts as a reader."""
    readers: dict[int, list[FileOp]] = defaultdict(list)
    for op in [*ops, FileOp("OUTPUT", (last,), ())]:
        for tensor in op.inputs:
            if tensor >= 0:
                readers[tensor].append(op)
    return dict(readers)


def _drop_start(model: FileModel, result: Rewritten) -> None:
    """QUANTIZE from float or uint8, and TRANSPOSE from channels first to channels last."""
    readers = readers_of(result.ops, result.last)
    for _ in range(_MOST_ENDS):
        found = readers.get(result.first, [])
        if len(found) != 1 or len(found[0].outputs) != 1:
            return
        op, source = found[0], model.tensors[result.first]
        if op.outputs[0] < 0 or op not in result.ops:
            return
        target = model.tensors[op.outputs[0]]
        of_pixels = source.is_unsigned and not target.is_unsigned and len(source.scales) == 1
        from_float = source.dtype == "FLOAT32" and target.dtype == "INT8"
        if op.kind == "QUANTIZE" and (of_pixels or from_float):
            result.pixels = _uint8_pixels(source) if of_pixels else result.pixels
        elif not (op.kind == "TRANSPOSE" and _order(model, op) == _CHANNELS_LAST):
            return
        result.first = op.outputs[0]
        result.drop(op)


def _uint8_pixels(tensor: FileTensor) -> tuple[float, int]:
    """Return scale and zero point of a uint8 tensor as the file has them."""
    return float(tensor.scales[0]), int(tensor.zero_points[0]) + 128


def _order(model: FileModel, op: FileOp) -> list[int]:
    if len(op.inputs) != 2 or not model.is_constant(op.inputs[1]):
        return []
    return [int(axis) for axis in np.asarray(model.tensors[op.inputs[1]].data).ravel()[:5]]


def _drop_end(result: Rewritten) -> None:
    """Operators after the logits or the embedding, and QUANTIZE to the type that the user reads."""
    writers = {op.outputs[0]: op for op in result.ops if len(op.outputs) == 1}
    readers = readers_of(result.ops, result.last)
    last, passed = result.last, []
    for _ in range(_MOST_ENDS):
        if last not in writers:
            return
        op = writers.pop(last)
        read = op.inputs[1:2] if op.kind == "SPLIT" else op.inputs[:1]  # SPLIT's axis is first
        if op.kind not in (*_ENDS, *_IDENTITIES) or not read or len(readers.get(read[0], ())) != 1:
            return
        last = read[0]
        passed.append(op)
        if op.kind in _ENDS:
            result.last = last
            while passed:
                result.drop(passed.pop())


def _drop_unneeded(result: Rewritten) -> None:
    """Keep the operators that the output depends on, in order."""
    writers: dict[int, list[FileOp]] = defaultdict(list)
    for op in result.ops:
        for tensor in op.outputs:
            writers[tensor].append(op)
    needed, open_tensors, seen = set(), [result.last], {result.last, result.first}
    while open_tensors:
        for op in writers.get(open_tensors.pop(), ()):
            needed.add(op.number)
            fresh = [t for t in op.inputs if t >= 0 and t not in seen]
            seen.update(fresh)
            open_tensors += fresh
    result.ops = [op for op in result.ops if op.number in needed]


def _fold_dilation(model: FileModel, result: Rewritten) -> None:
    """Turn SPACE_TO_BATCH_ND, convolution, BATCH_TO_SPACE_ND into one dilated convolution."""
    readers = readers_of(result.ops, result.last)
    replaced: dict[int, FileOp | None] = {}
    for op in result.ops:
        chain = _chain_after(op, readers) if op.kind == "SPACE_TO_BATCH_ND" else []
        folded = _folded(model, op, chain)
        if folded is not None:
            replaced |= {link.number: None for link in (op, *chain)} | {folded.number: folded}
    kept = (replaced.get(op.number, op) for op in result.ops)
    result.ops = [op for op in kept if op is not None]


def _is_convolution(op: FileOp) -> bool:
    return op.kind in ("CONV_2D", "DEPTHWISE_CONV_2D")


def _chain_after(op: FileOp, readers: dict[int, list[FileOp]]) -> list[FileOp]:
    """Return the operators from ``op`` to BATCH_TO_SPACE_ND, each the only reader of the last."""
    chain: list[FileOp] = []
    while len(op.outputs) == 1 and len(found := readers.get(op.outputs[0], [])) == 1:
        op = found[0]
        chain.append(op)
        if op.kind == "BATCH_TO_SPACE_ND" or not (op.kind in RENAMING or _is_convolution(op)):
            break
        if len(chain) > 8:
            break
    return chain


def _folded(model: FileModel, space: FileOp, chain: list[FileOp]) -> FileOp | None:
    """Return the dilated convolution, ``None`` if the operators are not one."""
    convolutions = [op for op in chain if _is_convolution(op)]
    if not chain or chain[-1].kind != "BATCH_TO_SPACE_ND" or len(convolutions) != 1:
        return None
    convolution, batch = convolutions[0], chain[-1]
    blocks, pads = _constant_rows(model, space)
    blocks_back, crops = _constant_rows(model, batch)
    plain = all(
        convolution.options.get(name) == 1
        for name in ("StrideH", "StrideW", "DilationHFactor", "DilationWFactor")
    )
    if not blocks or blocks != blocks_back or convolution.options["Padding"] != VALID or not plain:
        return None
    (top, bottom), (left, right) = (
        (before - cut_before, after - cut_after)
        for (before, after), (cut_before, cut_after) in zip(pads, crops, strict=True)
    )
    if min(top, bottom, left, right) < 0 or not _one_quantization(model, convolution, batch):
        return None
    options = {
        **convolution.options,
        "Top": top,
        "Left": left,
        "Bottom": bottom,
        "Right": right,
        "DilationHFactor": blocks[0],
        "DilationWFactor": blocks[1],
    }
    return replace(
        convolution,
        inputs=(space.inputs[0], *convolution.inputs[1:]),
        outputs=batch.outputs,
        options=options,
    )


def _constant_rows(model: FileModel, op: FileOp) -> tuple[list[int], list[tuple[int, int]]]:
    """Return block sizes and paddings or crops, for height and width; nothing if not constant."""
    if len(op.inputs) != 3 or not all(model.is_constant(i) for i in op.inputs[1:]):
        return [], []
    blocks, rows = (np.asarray(model.tensors[i].data) for i in op.inputs[1:])
    if blocks.shape not in ((1,), (2,)) or rows.shape != (blocks.size, 2):
        return [], []
    sizes = [1, *(int(n) for n in blocks)][-2:]
    sides = [(0, 0), *((int(a), int(b)) for a, b in rows)][-2:]
    return (sizes, sides) if min(sizes) >= 1 else ([], [])


def _one_quantization(model: FileModel, convolution: FileOp, batch: FileOp) -> bool:
    """Whether the op after the convolution keeps its quantization, as it must."""
    if len(convolution.outputs) != 1 or len(batch.outputs) != 1 or batch.outputs[0] < 0:
        return False
    made, kept = model.tensors[convolution.outputs[0]], model.tensors[batch.outputs[0]]
    return bool(
        np.array_equal(made.scales, kept.scales)
        and np.array_equal(made.zero_points, kept.zero_points)
    )
