"""The axes of a network's input: which of them are the channels, which height and width."""

from __future__ import annotations

from pmt.formats.onnx.file import FileModel, Node

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
