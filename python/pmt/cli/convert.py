"""``pmt convert``: the model as a file for other tools."""

import argparse

from pmt.cli.arguments import add_model, call, importer_options
from pmt.cli.output import Output
from pmt.model.loading import ConvertedFile, convert

USAGE = "pmt convert MODEL OUT [--into ORIGINAL.tflite] [--force]"
SUMMARY = "write a model or a run as .tflite, .onnx, .npz, C array or .pmt"
DESCRIPTION = """\
Write a model, or the trained model of a run folder or a board's card.img, in the format that OUT's
suffix names:

  .tflite  full-integer TFLite, int8 in and out
  .onnx    ONNX with quantize and dequantize nodes (QDQ), int8 in and out
  .npz     NumPy arrays of every layer: weights, bias, scales, zero points
  .h       the .pmt image as an aligned, constant array in C
  .pmt     the image of this project"""

_FORMATS = {
    ".pmt": "a .pmt image",
    ".tflite": "full-integer TFLite",
    ".onnx": "ONNX QDQ",
    ".npz": "NumPy arrays",
    ".h": "a C header",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model(parser)
    parser.add_argument("out", metavar="OUT", help="file to write; its suffix is the format")
    parser.add_argument(
        "--into",
        metavar="ORIGINAL.tflite",
        help="the .tflite file that the model was imported from: OUT is a copy of it with the "
        "model's weights and biases; every other byte is unchanged",
    )
    parser.add_argument("--force", action="store_true", help="replace OUT if it exists")


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    options = importer_options(arguments)
    written = call(convert, arguments, replace=arguments.force, **options)
    output.text(_report(written))
    output.figures(written.to_json())
    return 0


def _report(written: ConvertedFile) -> str:
    what = _FORMATS["." + written.format]
    if written.into is not None:
        what += f", {written.into} with these weights"
    sizes = [f"{end.height}x{end.width}x{end.channels}" for end in (written.input, written.output)]
    target = written.output
    logit = f"(int8 - {target.zero_point}) * {target.scale:.6g}".replace("- -", "+ ")
    return "\n".join(
        [
            f"{written.path}: {what}, {written.size:,} bytes",
            f"input   {sizes[0]}: {written.input_formula}",
            f"output  {sizes[1]}: logit = {logit}",
        ]
    )
