"""Nodes against ONNX's definitions of their operators: inputs, outputs, attributes, types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pmt._util.arrays import Array
from pmt._util.extras import import_extra
from pmt.formats.layers import Unsupported
from pmt.formats.onnx.file import Node

_REMEDY = "the file is damaged, export again"
# Names of ONNX for types of NumPy, where they differ.
_TYPES = {"float32": "float", "float64": "double"}
# Attributes that are read, as Python has them.
_KINDS = {"INT": int, "FLOAT": float, "STRING": str, "TENSOR": np.ndarray}


def require_defined(node: Node, opset: int) -> None:
    """Raise Unsupported where a node is not as ONNX defines its operator.

    Converters then need not ask whether an input or attribute that ONNX demands is there.
    """
    schema = _schema(node.kind, opset)
    if schema is None:
        return
    for given, what, least, most in (
        (node.inputs, "inputs", schema.min_input, schema.max_input),
        (node.outputs, "outputs", schema.min_output, schema.max_output),
    ):
        if not least <= len(given) <= most:
            allowed = f"{least}" if least == most else f"from {least} to {most}"
            raise Unsupported(f"it has {len(given)} {what}, not {allowed}", _REMEDY)
    for place, name in enumerate(node.inputs):
        formal = _formal(schema, place)
        if not name and formal.option != formal.option.__class__.Optional:
            raise Unsupported(f"its input {place} ({formal.name}) is left out", _REMEDY)
    for name, attribute in schema.attributes.items():
        if attribute.required and name not in node.attributes:
            raise Unsupported(f"it has no attribute {name}", _REMEDY)
    for name, value in node.attributes.items():
        kind = schema.attributes[name].type.name if name in schema.attributes else ""
        if kind and not _is_kind(value, kind):
            raise Unsupported(f"attribute {name} is {str(value)[:40]!r}, not {kind}", _REMEDY)


def require_types(node: Node, arrays: Sequence[Array], opset: int) -> None:
    """Raise Unsupported where constants are of types that the operator does not take together."""
    schema = _schema(node.kind, opset)
    found: dict[str, str] = {}
    for place, (name, array) in enumerate(zip(node.inputs, arrays, strict=True)):
        if schema is None or not name:
            continue
        formal, kind = _formal(schema, place), array.dtype.name
        allowed = {text.removeprefix("tensor(").removesuffix(")") for text in formal.types}
        if _TYPES.get(kind, kind) not in allowed:
            raise Unsupported(
                f"its input {place} ({formal.name}) is {kind}, which {node.kind} does not take",
                _REMEDY,
            )
        if found.setdefault(formal.type_str, kind) != kind:
            raise Unsupported(
                f"its inputs are {found[formal.type_str]} and {kind}, not of one type", _REMEDY
            )


def _schema(kind: str, opset: int) -> Any:
    """Return the definition of an operator in an opset; None where ONNX has none."""
    onnx: Any = import_extra("onnx", "reading .onnx needs the package onnx", "onnx")
    try:
        return onnx.defs.get_schema(kind, min(opset, np.iinfo(np.int32).max), "")
    except onnx.defs.SchemaError:
        return None


def _formal(schema: Any, place: int) -> Any:
    """Return the definition of an input; the last one stands for all that follow."""
    return schema.inputs[min(place, len(schema.inputs) - 1)]


def _is_kind(value: Any, kind: str) -> bool:
    one = _KINDS.get(kind.removesuffix("S"))
    if one is None:  # which is never read
        return True
    if kind in _KINDS:
        return isinstance(value, one)
    return isinstance(value, list) and all(isinstance(item, one) for item in value)
