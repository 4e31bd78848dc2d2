"""``pmt quantize``: a float ONNX network and a folder of images become an int8 model."""

import argparse
from pathlib import Path

from pmt._util.text import counted, split_names, table
from pmt.cli.arguments import add_integer, add_model_out, add_pixel_formula, add_threads, call
from pmt.cli.output import Output, checked_model_out, stage
from pmt.quantization import RANGE_METHODS, QuantizedModel, quantize, worst
from pmt.quantization.quantized_model import Accuracies

USAGE = "pmt quantize MODEL.onnx --calibrate DIR --out MODEL.pmt [options]"
SUMMARY = "quantize a float ONNX network to an int8 model"
DESCRIPTION = """\
Quantize a float network (ONNX) to int8, with the ranges of its activations measured on calibration
images. Shows how much noise int8 adds at every op, for plain ranges from minimum to maximum and for
the model as written."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("model", metavar="MODEL.onnx", help="float network, batch norm included")
    parser.add_argument(
        "--calibrate",
        metavar="DIR",
        required=True,
        help="data set in any layout that `pmt eval --data` reads; its train split is used, "
        "resized to the network's input",
    )
    add_model_out(parser)
    add_integer(
        parser, "--limit N", "calibrate on at most N images, always the same ones", default=512
    )
    _add_method(parser)
    _add_network(parser)
    parser.add_argument(
        "--eval",
        metavar="DIR",
        help="also measure float and int8 accuracy on the test split of this data set",
    )
    add_integer(
        parser,
        "--eval-limit N",
        "measure on at most N of its images, always the same ones",
        default=0,
        otherwise="all",
    )
    add_threads(parser)


def _add_method(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("method")
    group.add_argument(
        "--ranges",
        metavar="NAME",
        default="mse",
        help=f"ranges of activations: {', '.join(RANGE_METHODS)} (default: mse, the least mean "
        "square error)",
    )
    group.add_argument(
        "--equalize",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="move scale factors between layers so that channels share a range evenly (default: "
        "yes)",
    )
    group.add_argument(
        "--bias-correction",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="subtract the mean shift that int8 causes from the biases (default: yes)",
    )


def _add_network(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("network")
    add_pixel_formula(group, "the importer's")
    group.add_argument(
        "--class-names",
        metavar="A,B,..",
        help="names of the classes, in the order of the logits (default: those of the calibration "
        "data, if their number fits)",
    )


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    out = checked_model_out(arguments.out, arguments.model, replace=arguments.force)
    names = arguments.class_names
    if arguments.eval_limit and arguments.eval is None:
        raise ValueError(f"--eval-limit {arguments.eval_limit} needs --eval DIR")
    result = call(
        quantize,
        arguments,
        name=out.stem,
        class_names=None if names is None else split_names(names),
        stages=stage,
    )
    result.model.save(out)
    output.text(_report(result, arguments.calibrate, out))
    output.figures({"path": str(out), **result.to_json()})
    return 0


def _report(result: QuantizedModel, calibrate: str, out: Path) -> str:
    least, size = worst(result.noise), len(result.model.image())
    lines = [_noise_table(result), ""]
    lines += [f"warning: {message}" for message in result.warnings]
    lines += [
        f"calibrated on {result.images:,} train images of {calibrate}: {_method(result)}",
        f"worst op {least.name}: {least.signal_to_noise:.1f} dB; "
        f"output {result.noise[-1].signal_to_noise:.1f} dB, plain "
        f"{result.plain[-1].signal_to_noise:.1f} dB",
    ]
    lines += [_accuracy_line(role, found) for role, found in result.accuracies.items()]
    lines.append(
        f"{out}: {size:,} bytes, {result.float_bytes / size:.1f} times less than the float32 "
        "weights"
    )
    return "\n".join(lines)


def _noise_table(result: QuantizedModel) -> str:
    rows = [
        [str(index), op.name, op.kind, f"{plain.signal_to_noise:.1f}", f"{op.signal_to_noise:.1f}"]
        for index, (plain, op) in enumerate(zip(result.plain, result.noise, strict=True))
    ]
    return table(["op", "name", "kind", "plain dB", "dB"], rows, left=("name", "kind"))


def _method(result: QuantizedModel) -> str:
    parts = [f"ranges {result.ranges}"]
    if result.equalized is not None:
        found = result.equalized
        held = f" ({found.held:,} held by a bounded activation)" if found.held else ""
        parts.append(f"{counted(found.channels, 'channel')} equalized{held}")
    if result.bias_correction:
        parts.append("biases corrected")
    return ", ".join(parts)


def _accuracy_line(role: str, found: Accuracies) -> str:
    same = f"{found.agreement:.4f} the same class"
    images = counted(found.n, f"{role} image")
    if found.float_top1 is None or found.int8_top1 is None:
        return f"{images}: {same}; the labels are of other classes, so there is no accuracy"
    note = " (seen by the quantizer: not a test)" if role == "calibration" else ""
    return (
        f"{images}: accuracy float {found.float_top1:.4f}, int8 {found.int8_top1:.4f}, {same}{note}"
    )
