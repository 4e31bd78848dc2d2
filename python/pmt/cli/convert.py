"""``pmt convert``: the model as a file for other tools."""

from __future__ import annotations

import argparse
import zlib
from pathlib import Path
from typing import Any

from pmt import formats
from pmt.cli.arguments import add_json, add_model
from pmt.cli.output import Output
from pmt.cli.sources import load_model
from pmt.formats.layers import input_formula
from pmt.net.graph import Graph

USAGE = "pmt convert MODEL OUT [--into ORIGINAL.tflite] [--force]"
SUMMARY = "write a model or a run as .tflite, .onnx, .npz, C array or .pmt"
DESCRIPTION = """\
Write a model, or the trained model of a run folder or a board's card.img, in the format that OUT's
suffix names:
  .tflite  full-integer TFLite, int8 in and out
  .onnx    ONNX with quantise and dequantise nodes (QDQ), int8 in and out
  .npz     NumPy arrays of every layer: weights, bias, scales, zero points
  .h, .c   the .pmt image as an aligned, constant array in C
  .pmt     the image of this project"""

_FORMATS = {
    ".pmt": "a .pmt image",
    ".tflite": "full-integer TFLite",
    ".onnx": "ONNX QDQ",
    ".npz": "NumPy arrays",
    ".h": "a C header",
    ".c": "a C source file",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model(parser)
    parser.add_argument("out", metavar="OUT", help="file to write; its suffix is the format")
    parser.add_argument(
        "--into",
        metavar="ORIGINAL.tflite",
        help="the .tflite file that the model was imported from: OUT is a copy of it with the "
        "model's weights and biases, and every other byte as it was",
    )
    parser.add_argument("--force", action="store_true", help="replace OUT if it exists")
    add_json(parser)


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    formats.check_destination(arguments.out, replace=arguments.force)
    graph = load_model(arguments).to_graph()
    size = formats.write(graph, arguments.out, into=arguments.into)
    figures = _figures(graph, Path(arguments.out), size, arguments.into)
    output.text(_report(figures))
    output.figures(figures)
    return 0


def _figures(graph: Graph, path: Path, size: int, into: str | None) -> dict[str, Any]:
    ends = {}
    for name, index in (("input", graph.input), ("output", graph.output)):
        tensor = graph.tensors[index]
        ends[name] = {
            "shape": [tensor.height, tensor.width, tensor.channels],
            "scale": tensor.scale,
            "zero_point": tensor.zero_point,
        }
    return {
        "path": str(path),
        "format": path.suffix.lower()[1:],
        "bytes": size,
        "crc32": f"{zlib.crc32(path.read_bytes()):08x}",
        "into": into,
        **ends,
        "input_formula": input_formula(graph),
    }


def _report(figures: dict[str, Any]) -> str:
    what = _FORMATS["." + figures["format"]]
    if figures["into"] is not None:
        what += f", {figures['into']} with these weights"
    source, target = figures["input"], figures["output"]
    sizes = ["x".join(map(str, end["shape"])) for end in (source, target)]
    return "\n".join(
        [
            f"{figures['path']}: {what}, {figures['bytes']:,} bytes",
            f"input   {sizes[0]}: {figures['input_formula']}",
            f"output  {sizes[1]}: logit = (int8 - {target['zero_point']}) * {target['scale']:.6g}"
            .replace("- -", "+ "),
        ]
    )  # fmt: skip
