"""``pmt quantize``: a float ONNX network and a folder of images become an int8 model."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

from pmt.cli.arguments import add_json, add_threads, integer
from pmt.cli.output import Output, stage
from pmt.cli.quantize_report import Quantised, calibration_images, figures, float_accuracy, text
from pmt.datasets import Dataset
from pmt.model import Model
from pmt.net.float_graph import check_calibration
from pmt.quantization import (
    RANGE_METHODS,
    FloatGraph,
    activation_ranges,
    correct_biases,
    equalize,
    quantize,
    quantize_with_ranges,
    signal_to_noise,
)
from pmt.quantization.ranges import DEFAULT_PERCENTILE, check_method

USAGE = "pmt quantize MODEL.onnx --calibrate DIR --out MODEL.pmt [options]"
SUMMARY = "a float ONNX network becomes an int8 model"
DESCRIPTION = """\
Quantise a float network (ONNX) to int8, with the ranges of its activations measured on calibration
images. Shows how much noise int8 adds at every op: plain (minimum and maximum, nothing else) and
as written."""

_REPORT_IMAGES = 64


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("model", metavar="MODEL.onnx", help="float network, batch norm included")
    parser.add_argument(
        "--calibrate",
        metavar="DIR",
        required=True,
        help="data set in any layout that `pmt eval --data` reads; its train split is used, and "
        "resized to the network's input",
    )
    parser.add_argument("--out", metavar="PATH", required=True, help=".pmt file to write")
    parser.add_argument(
        "--images",
        metavar="N",
        type=integer(1),
        default=512,
        help="calibrate on at most N images, always the same ones (default: 512)",
    )
    _add_method(parser)
    _add_network(parser)
    parser.add_argument(
        "--eval",
        metavar="DIR",
        help="measure float and int8 accuracy on the test split of this data set, too",
    )
    parser.add_argument(
        "--eval-images",
        metavar="N",
        type=integer(1),
        default=0,
        help="on at most N of its images, always the same ones (default: all)",
    )
    add_threads(parser)
    add_json(parser)


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
        "--percentile",
        metavar="P",
        type=float,
        help=f"for --ranges percentile: above 50, at most 100 (default: {DEFAULT_PERCENTILE})",
    )
    group.add_argument(
        "--equalize",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="move factors between layers so that channels share a range evenly (default: yes)",
    )
    group.add_argument(
        "--bias-correction",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="take the mean shift that int8 causes off the biases (default: yes)",
    )


def _add_network(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("network")
    for name, what in (("mean", "mean"), ("std", "spread")):
        group.add_argument(
            f"--input-{name}",
            metavar="V[,V,V]",
            type=_numbers,
            help=f"{what} of the pixels, per channel, in units of a 0..255 pixel: the network "
            "reads (pixel - mean) / std (default: the importer's)",
        )
    group.add_argument(
        "--class-names",
        metavar="A,B,..",
        help="names of the classes, in the order of the logits (default: those of the calibration "
        "data, where their number fits)",
    )


def _numbers(text: str) -> float | tuple[float, ...]:
    try:
        values = tuple(float(part) for part in text.split(","))
        return values if len(values) > 1 else values[0]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} must be one number, or one for each channel, separated by commas"
        ) from None


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    out = _checked_out(arguments.out)
    check_method(arguments.ranges, arguments.percentile)
    graph = _read(arguments)
    data = calibration_images(
        arguments.calibrate, graph, split="train", limit=arguments.images, argument="--calibrate"
    )
    check_calibration(graph, data.images)
    names = _class_names(arguments.class_names, graph, data)
    test = None
    if arguments.eval is not None:
        test = calibration_images(
            arguments.eval, graph, split="test", limit=arguments.eval_images, argument="--eval"
        )
    result = _quantised(arguments, graph, data)
    result.graph.metadata = {
        **result.graph.metadata,
        **({"class_names": list(names)} if names else {}),
        "name": out.stem,
        "source": f"{Path(arguments.model).name}, quantised by pmt quantize",
    }
    model = Model.from_graph(result.graph)
    accuracies = {
        role: float_accuracy(graph, model, images, role, threads=arguments.threads)
        for role, images in (("calibration", data), ("test", test))
        if images is not None
    }
    model.save(out)
    output.text(text(result, model, graph, accuracies, out))
    output.figures(figures(result, model, graph, accuracies, out))
    return 0


def _checked_out(path: str) -> Path:
    """Find out before the work, not after it, that the file cannot be written."""
    out = Path(path)
    if out.suffix != ".pmt":
        raise ValueError(f"--out {path}: a model is written as .pmt; change the suffix")
    if not out.absolute().parent.is_dir():
        raise FileNotFoundError(f"--out {path}: its folder does not exist; create it")
    return out


def _read(arguments: argparse.Namespace) -> FloatGraph:
    if Path(arguments.model).suffix.lower() != ".onnx":
        raise ValueError(
            f"{arguments.model}: a float network is read from .onnx; export it "
            "(torch.onnx.export), or use an int8 model as it is"
        )
    given = {"input_mean": arguments.input_mean, "input_std": arguments.input_std}
    reader = import_module("pmt.formats.onnx.float_importer")
    graph: FloatGraph = reader.read(
        arguments.model, **{name: value for name, value in given.items() if value is not None}
    )
    return graph


def _class_names(given: str | None, graph: FloatGraph, data: Dataset) -> tuple[str, ...]:
    classes = _classes(graph)
    if given is None:
        return data.class_names if len(data.class_names) == classes else ()
    names = tuple(name.strip() for name in given.split(","))
    if len(names) != classes or not all(names) or len(set(names)) != len(names):
        raise ValueError(
            f"--class-names gives {len(names)} names for the {classes} logits of the network: "
            "give one each, none twice or blank"
        )
    return names


def _classes(graph: FloatGraph) -> int:
    height, width, channels = graph.tensors[graph.output].shape
    return height * width * channels


def _quantised(arguments: argparse.Namespace, graph: FloatGraph, data: Dataset) -> Quantised:
    images = data.images
    plain = quantize(graph, images, progress=stage("plain ranges"))
    equalised = equalize(graph, images, progress=stage("peaks")) if arguments.equalize else None
    floating = graph if equalised is None else equalised.graph
    ranges = activation_ranges(
        floating,
        images,
        method=arguments.ranges,
        percentile=arguments.percentile,
        progress=stage(f"ranges ({arguments.ranges})"),
    )
    result = quantize_with_ranges(floating, ranges)
    if arguments.bias_correction:
        result = correct_biases(floating, result, images, progress=stage("bias correction"))
    shown = images[:_REPORT_IMAGES]
    return Quantised(
        graph=result,
        images=len(images),
        data=arguments.calibrate,
        method=arguments.ranges,
        percentile=arguments.percentile,
        equalised=equalised,
        bias_correction=arguments.bias_correction,
        plain=signal_to_noise(graph, plain, shown, progress=stage("noise, plain")),
        noise=signal_to_noise(floating, result, shown, progress=stage("noise")),
    )
