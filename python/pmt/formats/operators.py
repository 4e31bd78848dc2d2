"""The operators of a network's file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from pmt._util.extras import import_extra

__all__ = ["count_operators"]


def count_operators(path: str | Path) -> Counter[str]:
    """Count the operators of a ``.tflite`` or ``.onnx`` file by kind; other files have none."""
    path = Path(path)
    if path.suffix.lower() == ".tflite":
        from pmt.formats.tflite.file import read_file

        return Counter(op.kind for op in read_file(path).ops)
    if path.suffix.lower() == ".onnx":
        onnx = import_extra("onnx", "reading .onnx needs the package onnx", "onnx")
        return Counter(
            node.op_type for node in onnx.load(str(path), load_external_data=False).graph.node
        )
    return Counter()
