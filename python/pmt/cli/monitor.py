"""``pmt monitor``: a board's training, as it goes."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from pmt._util.extras import import_extra
from pmt.cli.arguments import add_integer
from pmt.cli.output import EXIT_FAILED, Output
from pmt.firmware.monitor import TrainingLog, follow

USAGE = "pmt monitor (--port NAME | --file LOG | -) [--baud N]"
SUMMARY = "loss, accuracy, time left and verdict of a board that trains"
DESCRIPTION = """\
Follow the log of exported firmware: loss and accuracy with their means over ten steps, time left,
checkpoints, errors, and at the end the use of memory and the verdict of the comparison with the
host. A port is followed up to the verdict. The exit code is 0 if everything was equal, else 1."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--port", metavar="NAME", help="serial port, for example /dev/ttyACM0")
    source.add_argument("--file", metavar="LOG", help="log that was written earlier")
    source.add_argument(
        "pipe",
        nargs="?",
        metavar="-",
        help="standard input, as in `make qemu | pmt monitor -`",
    )
    add_integer(parser, "--baud N", "speed of the port, in bits per second", default=115200)


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    if arguments.pipe not in (None, "-"):
        raise ValueError(
            f"{arguments.pipe!r} is no argument; give a log as --file, a port as --port"
        )
    log = TrainingLog()
    try:
        for text in follow(_lines(arguments), log, to_verdict=arguments.port is not None):
            output.text(text)
    except KeyboardInterrupt:  # the summary of what was seen is what the user wants
        output.text("")
    output.text(log.summary())
    output.figures(log.to_json())
    return 0 if log.equal else EXIT_FAILED


def _lines(arguments: argparse.Namespace) -> Iterator[str]:
    if arguments.port is not None:
        yield from _port_lines(arguments.port, arguments.baud)
    elif arguments.file is not None:
        with Path(arguments.file).open(errors="replace") as file:
            yield from file
    else:
        yield from sys.stdin


def _port_lines(port: str, baud: int) -> Iterator[str]:
    serial = import_extra("serial", "--port needs pyserial", "monitor")
    with serial.Serial(port, baud) as stream:
        while True:
            yield stream.readline().decode("utf-8", errors="replace")
