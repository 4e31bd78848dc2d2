"""Reads a file's nodes one after the other into a draft network, collecting all problems."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from pmt._core import LARGEST_SIDE, MOST_CHANNELS
from pmt._util.text import printable
from pmt.formats.layers import NO_STATE, Unsupported, layer_blocks
from pmt.formats.onnx import elementwise, windows
from pmt.formats.onnx.call import Call, QuantizedConstant, Value, dequantize, moved, quantize
from pmt.formats.onnx.definitions import require_defined
from pmt.formats.onnx.draft import Draft, Origin, View, clean, image_view
from pmt.formats.onnx.file import FileModel, Node, read_file
from pmt.formats.onnx.folding import BEFORE_EXPORT, FOLDED, READ_ONE_BY_ONE, fold
from pmt.formats.onnx.windows import MOST_ZEROS
from pmt.net.graph import is_layer
from pmt.net.pixels import PixelFormula

QUANTIZED_INPUTS = ("int8", "uint8")
_INPUTS = ("float32", "float16", "float64", "bfloat16", *QUANTIZED_INPUTS)
_SMALL_CONSTANT = 65_536
_SMALL_LAYERS = 2**20
_MOST_COPIES = 16  # of the file, as constants that are computed
_RENAMING = (
    *("Identity", "Cast", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Dropout"),
)
_KEEPING = (*_RENAMING, "QuantizeLinear", "DequantizeLinear")
_AFTER_SOFTMAX = (*_KEEPING, "Softmax", "LogSoftmax", "ArgMax")

# Left out at the end of the network, refused before it.
_ENDS: dict[str, Callable[[Call], Value]] = {
    **dict.fromkeys(("Sigmoid", "Tanh"), elementwise.left_out),
    "HardSigmoid": elementwise.hard_sigmoid,
    "ArgMax": elementwise.softmax,
}
_CONVERTERS: dict[str, Callable[[Call], Value]] = {
    **elementwise.CONVERTERS,
    **windows.CONVERTERS,
    "DequantizeLinear": dequantize,
    "Identity": Call.view,
    "QuantizeLinear": quantize,
}

_ACTIVATIONS = (
    *("HardSwish", "HardSigmoid", "Sigmoid", "Swish", "Mish", "Elu", "Selu", "Celu", "Gelu"),
    *("LeakyRelu", "PRelu", "ThresholdedRelu", "Softplus", "Tanh", "Erf"),
)
_NORMALIZATIONS = ("InstanceNormalization", "LayerNormalization", "GroupNormalization", "LRN")
_STATIC = (
    "quantize with onnxruntime.quantization.quantize_static(quant_format=QuantFormat.QDQ), or give "
    "the float network to `pmt quantize`"
)
_INTEGER = (
    *("ConvInteger", "MatMulInteger", "DynamicQuantizeLinear"),
    *("QLinearConv", "QLinearMatMul", "QLinearAdd", "QLinearGlobalAveragePool", "QGemm"),
)
_ELSE = "replace it before the export; docs/guides/importers_onnx.md lists others"
_REMEDIES = {
    **dict.fromkeys(_ACTIVATIONS, "train the network with ReLU or ReLU6 instead"),
    **dict.fromkeys(_NORMALIZATIONS, "use batch norm, which is folded into the layers"),
    **dict.fromkeys(_INTEGER, _STATIC),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), NO_STATE),
    "ArgMax": "export up to the logits, the input of ArgMax",
    "Split": "export without branches over parts of the channels",
    "ConvTranspose": "only classifiers are supported",
    "Resize": "resize the images before the network",
}
# Their output has the shape of their input: nodes after them can still be looked at.
_ELEMENTWISE = ("Abs", "Sqrt", "Exp", "Neg", "Pow", "Mul", "Div", "Sub")
_PASS_THROUGH = frozenset((*_ACTIVATIONS, *_NORMALIZATIONS, *_ELEMENTWISE))


def read_draft(path: Path, *, quantized: bool, order: str = "") -> tuple[FileModel, Draft, int]:
    """Read a file and convert all its nodes, as a QDQ network or as a float one.

    The file, the network, and which activation is its output are returned. ValueError is raised
    with everything that is not supported, each thing with node, op and remedy.
    """
    model = read_file(path)
    if quantized:
        _require_quantized(model, path)
    lowering = _Lowering(model, quantized)
    output = None
    try:
        lowering.start(order)
    except Unsupported as problem:  # what reads the input is left out, other problems are noted
        model.problems.add(problem)
    try:
        with np.errstate(all="ignore"):  # what is not finite is refused with the finished graph
            for node in model.nodes:
                lowering.convert(node)
        output = lowering.output()
    except Unsupported as problem:
        model.problems.add(problem)
    if output is None or model.problems:
        raise model.problems.error(path.name)
    return model, lowering.draft, clean(lowering.draft, output)


def graph_fields(draft: Draft, output: int, pixels: PixelFormula, source: str) -> dict[str, Any]:
    """Return all fields of a graph but its tensors and ops."""
    trainable = [i for i, op in enumerate(draft.ops) if is_layer(op) and not op.fixed]
    return {
        "input": 0,
        "output": output,
        "input_mean": pixels.mean,
        "input_std": pixels.std,
        "blocks": layer_blocks(trainable),
        "metadata": {"source": f"onnx {printable(source)}", "dropped_operators": draft.dropped},
    }


def _require_quantized(model: FileModel, path: Path) -> None:
    kinds = {node.kind for node in model.nodes}
    if not kinds & {"QuantizeLinear", "DequantizeLinear"} and not any(
        "Integer" in kind or kind.startswith(("QLinear", "QGemm")) for kind in kinds
    ):
        source, out = shlex.quote(str(path)), shlex.quote(f"{path.stem}.pmt")
        raise ValueError(
            f"{path.name}: is a float network, an int8 one (with QuantizeLinear and "
            "DequantizeLinear) is needed here: quantize it first with "
            f"`pmt quantize {source} --calibrate DIR --out {out}`"
        )


class _Lowering:
    def __init__(self, model: FileModel, quantized: bool) -> None:
        self._model = model
        self._problems = model.problems
        self._values: dict[str, Value | None] = dict(model.constants)  # None: not converted
        self._activations = {model.input}  # the values that depend on the input
        self._budget = max(_SMALL_CONSTANT, model.size)
        self._room = _MOST_COPIES * self._budget
        # Room for the zeros of groups and dilations, and for small layers that ops become.
        most = MOST_ZEROS * model.size // (1 if quantized else 4)
        self.draft = Draft(quantized, most + _SMALL_LAYERS)

    def start(self, order: str) -> None:
        """Make the input's activation, its axes in an order that is given or found."""
        name, shape = self._model.input, self._model.shape
        if self._model.input_dtype not in _INPUTS:
            raise Unsupported(
                f"the input {name[:80]!r} is {self._model.input_dtype}", "float32 is supported"
            )
        if not 2 <= len(shape) <= 4 or min(shape[1:]) < 1:
            raise Unsupported(
                f"the input {name[:80]!r} has shape {shape} (0: open)",
                "export with a batch of images (batch, channels, height, width), windows (batch, "
                "channels, length) or vectors (batch, features), all but the batch of fixed size",
            )
        order = order or input_order(self._model)
        if len(order) != len(shape):
            raise Unsupported(
                f"the input {name[:80]!r} has shape {shape}", f"order={order!r} is of other axes"
            )
        sizes = {**dict.fromkeys("HWC", 1), **dict(zip(order, shape, strict=True))}
        batch, size = sizes["N"] or 1, (sizes["H"], sizes["W"], sizes["C"])
        if size[2] > MOST_CHANNELS or max(size[:2]) > LARGEST_SIDE:
            raise Unsupported(
                f"the input {name[:80]!r} has height, width, channels {size}",
                f"at most {LARGEST_SIDE} a side and {MOST_CHANNELS} channels are supported",
            )
        self.draft.tensor("input", size)
        if self._model.input_dtype in QUANTIZED_INPUTS:
            self.draft.tensors[0].stored = self._model.input_dtype
        self.draft.factor, self.draft.offset = np.ones(size[2]), np.zeros(size[2])
        sole = self._model.reads[name] == 1
        self._values[name] = image_view(0, batch, size, order, sole=sole)

    def convert(self, node: Node) -> None:
        """Convert one node; problems are noted, and nodes that depend on it are left out."""
        values = [self._values.get(name) if name else None for name in node.inputs]
        # Converters may look at three inputs, whether or not the node has them.
        filled = values + [None] * max(0, 3 - len(values))
        call = Call(node, filled, self.draft, self._model.opset, self._budget)
        self.draft.node = Origin(node.kind, f"node {node.name[:80]!r} ({node.kind})")
        if node.kind != "Shape" and self._activations.intersection(node.inputs):
            self._activations.update(node.outputs)
        try:
            results = self._converted(call, values)
        except Unsupported as problem:
            self._problems.add(problem, node.kind, node.name)
            results = [self._stand_in(node, values)]
        if node.kind not in (*_KEEPING, "Clip", "Relu"):
            self._note_origin(results)
        for name, result in zip_longest(node.outputs, results[: len(node.outputs)]):
            if name:
                self._values[name] = self._read_alike(result, name, values)

    def _note_origin(self, results: Sequence[Value | None]) -> None:
        """Let an activation that a node was merged with be named after the node."""
        for result in results:
            if isinstance(result, View):
                self.draft.tensors[result.tensor].origin = self.draft.node

    def _converted(self, call: Call, values: list[Value | None]) -> Sequence[Value | None]:
        """Return the outputs of a node, none where an input of it could not be converted."""
        node = call.node
        convert = _CONVERTERS.get(node.kind)
        if node.kind in _ENDS and self._is_at_end(node):
            convert = _ENDS[node.kind]
        if node.problem is not None:
            raise node.problem
        failed = any(name and self._values.get(name) is None for name in node.inputs)
        computed = _reads_constants(call)
        if failed:  # a constant made of a refused one has no problem of its own
            computed = node.kind in FOLDED and not self._activations.intersection(node.inputs)
        if convert is None and not computed:
            raise Unsupported("this operator is not supported", _REMEDIES.get(node.kind, _ELSE))
        if failed:
            return ()
        require_defined(node, call.opset)
        results: Sequence[Value | None]
        if computed:
            results = self._folded(call)
        else:
            assert convert is not None
            self._refuse_after_softmax(node, values)
            first = values[0]
            # A value that is left out may have had other axes, as the class that ArgMax gives.
            named_only = isinstance(first, View) and first.dropped and node.kind in _RENAMING
            results = [first if named_only else convert(call)]
        for place, name in list(enumerate(node.outputs))[len(results) :]:
            if name and self._model.reads[name]:
                raise Unsupported(f"its output {place} is read", "only the first one is supported")
        return results

    def _folded(self, call: Call) -> Sequence[Value]:
        """Compute a node of constants; all that the file asks for have bounded sizes together."""
        results = _computed(call)
        # Some operators take a step of Python for each value that they read.
        read = call.values if call.node.kind in READ_ONE_BY_ONE else ()
        counted = (*results, *read)
        self._room -= sum(value.size for value in counted if isinstance(value, np.ndarray))
        if self._room < 0:
            raise Unsupported(
                f"constants are computed of more than {_MOST_COPIES} times the values of the file",
                BEFORE_EXPORT,
            )
        return results

    def _is_at_end(self, node: Node) -> bool:
        """Whether nothing that computes stands between a node and the output."""
        name = node.outputs[0]
        for later in self._model.nodes:
            if name in later.inputs[:1] and later.kind in _AFTER_SOFTMAX and later.outputs:
                name = later.outputs[0]
        return name == self._model.output

    def _refuse_after_softmax(self, node: Node, values: list[Value | None]) -> None:
        for value in values:
            if isinstance(value, View) and value.dropped and node.kind not in _AFTER_SOFTMAX:
                raise Unsupported(
                    f"it reads the result of {value.dropped!r}",
                    "a softmax is supported at the end only, export up to the logits",
                )

    def _stand_in(self, node: Node, values: list[Value | None]) -> Value | None:
        """Let later nodes read an activation after a node that failed but keeps the shape."""
        views = [value for value in values if isinstance(value, View)]
        if node.kind in _PASS_THROUGH and views and len({view.shape for view in views}) == 1:
            return replace(views[0], sole=False, raw=False)
        return None

    def _read_alike(
        self, result: Value | None, name: str, values: list[Value | None]
    ) -> Value | None:
        """Note in an activation's view whether anything else reads the activation."""
        if not isinstance(result, View):
            return result
        sources = [v for v in values if isinstance(v, View) and v.tensor == result.tensor]
        sole = result.sole and all(view.sole for view in sources)
        return replace(result, sole=sole and self._model.reads[name] == 1)

    def output(self) -> int | None:
        """Return the output's activation; None where a problem has been noted for it."""
        if self._problems:
            return None
        value = self._values.get(self._model.output)
        if not isinstance(value, View):
            raise Unsupported("the output does not depend on the input", "export again")
        if not any(is_layer(op) and not op.fixed for op in self.draft.ops):
            raise Unsupported("there is no layer with weights", "export a trained network")
        if len(value.axes) < 4 and not value.in_memory_order:
            raise Unsupported(
                f"the output is a flattened map of {value.size} (height, width, channels)",
                "end the network with a pool or a dense layer, or with the map itself",
            )
        return value.tensor


def _reads_constants(call: Call) -> bool:
    """Whether a node is to be computed at once: all that it reads is known."""
    inputs = call.values[: len(call.node.inputs)]
    if call.node.kind == "Shape" or any(isinstance(value, View) for value in inputs):
        return False
    return call.node.kind in FOLDED or any(value is not None for value in inputs)


def _computed(call: Call) -> Sequence[Value]:
    kind, first = call.node.kind, call.values[0] if call.values else None
    if isinstance(first, QuantizedConstant) and kind not in ("QuantizeLinear", "Add", "Mul"):
        return [moved(call, first)]
    if kind in ("QuantizeLinear", "DequantizeLinear"):
        return [_CONVERTERS[kind](call)]
    if kind not in FOLDED:
        raise Unsupported("it reads constants alone, of which it is not computed", BEFORE_EXPORT)
    return fold(call)


# Their axis 1 is the channels.
_SPATIAL = (
    *("Conv", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"),
    "BatchNormalization",
)
_LAYOUT_KEEPING = (
    *("Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Cast", "Identity", "Dropout", "Clip"),
    *("Relu", "Pad", "QuantizeLinear", "DequantizeLinear"),
)
_INSERTED = -1
_USUAL = {2: "NC", 3: "NWC"}  # as they are stored, where nothing says another order
_BY_CHANNELS = {
    4: {1: "NCHW", 2: "NHCW", 3: "NHWC"},
    3: {1: "NCW", 2: "NWC", _INSERTED: "NHW"},
    2: {1: "NC", _INSERTED: "NW"},
}


def input_order(model: FileModel) -> str:
    """Return a letter of N, H, W and C for each axis of the input, which has 2 to 4.

    What first reads the input as an image or a window says which axis is the channels; without it,
    images are told by their sizes, and windows and vectors are as they are stored.
    """
    rank = len(model.shape)
    channels, moved = _channel_axis(model)
    if channels in _BY_CHANNELS[rank]:
        return _BY_CHANNELS[rank][channels]
    if rank < 4:
        return _USUAL[rank]
    if moved is not None:
        return "NHWC" if moved == [0, 3, 1, 2] else "NCHW"
    return "NHWC" if model.shape[1] > 4 >= model.shape[3] else "NCHW"


def _channel_axis(model: FileModel) -> tuple[int | None, list[int] | None]:
    """Follow the input to the first node that reads channels.

    The input's axis that they are is returned, None where there is no such node, and how the first
    Transpose on the way moves the axes.
    """
    name, axes = model.input, list(range(len(model.shape)))
    moved: list[int] | None = None
    for node in model.nodes:
        if name not in node.inputs:
            continue
        if node.kind in _SPATIAL:
            return (axes[1] if len(axes) > 1 else None), moved
        if node.kind in ("Transpose", "Unsqueeze", "Squeeze"):
            following = _moved(model, node, axes)
            if following is None:
                break
            if node.kind == "Transpose" and moved is None:
                moved = following
            axes = following
        elif node.kind not in _LAYOUT_KEEPING:
            break
        name = node.outputs[0] if node.outputs else ""
    return None, moved


def _moved(model: FileModel, node: Node, axes: list[int]) -> list[int] | None:
    """Return the axes after a node that moves, adds or removes some; None where it is unclear."""
    if node.kind == "Transpose":
        order = node.attributes.get("perm", list(range(len(axes)))[::-1])
        fits = isinstance(order, list) and sorted(order) == list(range(len(axes)))
        return [axes[i] for i in order] if fits else None
    given = node.attributes.get("axes")
    constant = model.constants.get(node.inputs[1]) if len(node.inputs) > 1 else None
    if constant is not None:
        given = constant.ravel().tolist()
    if not isinstance(given, list) or not all(isinstance(axis, int) for axis in given):
        return None
    rank = len(axes) + (len(given) if node.kind == "Unsqueeze" else 0)
    if not all(-rank <= axis < rank for axis in given):
        return None
    places = sorted({axis % rank for axis in given})
    if node.kind == "Squeeze":
        return [axis for i, axis in enumerate(axes) if i not in places]
    result = list(axes)
    for place in places:
        result.insert(place, _INSERTED)
    return result
