"""``pmt stream``: live images for a board that learns by itself."""

import argparse

from pmt.cli.arguments import add_data, add_integer, call, data_source
from pmt.cli.output import EXIT_FAILED, Output
from pmt.firmware.stream import read_model, stream

USAGE = "pmt stream DIR --data DIR [--corruption NAME] [--port NAME] [options]"
SUMMARY = "send images to a board that learns by itself, and compare its replies"
DESCRIPTION = """\
Send images to a learner that `pmt export --learner` wrote, over the serial line of the board or of
an emulated one: it predicts the test images, takes training images in, learns, chooses a state, and
predicts the test images again. A program of `pmt export --inference` only predicts. The same
learner runs here, and every reply is compared with its own. The exit code is 0 if everything was
equal, else 1."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "folder", metavar="DIR", help="project of `pmt export --learner`, or --inference"
    )
    add_data(parser, required=True)
    parser.add_argument(
        "--port",
        metavar="NAME",
        help="serial port of a board that runs the program (default: it is built and emulated)",
    )
    add_integer(parser, "--baud N", "speed of the port, in bits per second", default=115200)
    add_integer(
        parser,
        "--limit N",
        "training images to send, at most as many as the board has room for",
        otherwise="as many",
    )
    add_integer(parser, "--test N", "test images to predict before and after", default=100)
    add_integer(
        parser,
        "--labels N",
        "tell the board the labels of the first N training images; with 0 it is aligned alone",
        otherwise="all",
        within=(0, None),
    )
    add_integer(
        parser,
        "--slice N",
        "let the board learn in slices of N steps; results do not depend on it",
        otherwise="whole phases",
    )


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    data = data_source(arguments)
    model, export = read_model(arguments.folder)
    count = min(export["samples"], arguments.limit or export["samples"])
    report = call(
        stream,
        arguments,
        data=data.load("train", model, limit=count) if count else None,
        test=data.load("test", model, limit=arguments.test),
        steps=arguments.slice or 0,
        progress=output.text,
    )
    output.text(str(report))
    output.figures(report.to_json())
    return 0 if report.equal else EXIT_FAILED
