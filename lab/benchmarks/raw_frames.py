r"""Raw frames on a board: MCUNet behind each filter, within the STM32F746's memory, in QEMU.

    python benchmarks/raw_frames.py --data DATA --out runs/raw_frames

DATA holds the folder cifar-10-batches-bin, whose test images are enlarged to frames of 120x160.
The board filters and resamples them and predicts; every reply is compared with the host's. A
filter's instructions are those of a prediction with it, less one without: counted by the emulator.

    python benchmarks/raw_frames.py --table results/raw-frames.json
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import pmt
from pmt import datasets
from pmt.cli.output import table
from pmt.firmware.export import export_learner
from pmt.firmware.stream import INSTRUCTION_NS, Board, emulated_board, prediction_reply
from pmt_lab.kept_benchmark import run_benchmark

SIZE = (120, 160)
FRAMES = 4
TARGET = "qemu-mps2-an500"
CLOCK_HZ = 216e6
FILTERS = {
    "none": (),
    "switching_median": (pmt.Filter("switching_median", 32),),
    "dct_shrinkage": (pmt.Filter("dct_shrinkage", 60, "square_root"),),
    "sharpening": (pmt.Filter("sharpening", 11),),
    "standardization": (pmt.Filter("standardization", 55),),
    "tone_curve": (pmt.Filter("tone_curve", -5),),
}


def row_of(name: str, data: Path, out: Path) -> dict[str, Any]:
    """Return the cost of a prediction behind a filter."""
    model = pmt.load("cifar10_mcunet").with_input_stage(pmt.InputStage(SIZE, FILTERS[name]))
    images = datasets.load(
        data / "cifar-10-batches-bin", split="test", size=SIZE, limit=FRAMES
    ).images
    export = export_learner(
        model, target=TARGET, like="stm32f746g-disco", out=out / name, samples=32, force=True
    )
    learner = pmt.Learner(model, samples=32, keeps_confirmed=False)
    host = learner.predict(images)
    with emulated_board(out / name, TARGET, pipe=True, counts=True) as line:
        board = Board(line, lambda index: np.empty(0, np.int8))
        started = milliseconds(board)
        replies = [board.ask("P", frame=image) for image in images]
        taken = milliseconds(board) - started
    expected = [prediction_reply(host, index) for index in range(FRAMES)]
    return {
        "filter": name,
        "instructions": taken * 10**6 / INSTRUCTION_NS / FRAMES,
        "equal": replies == expected,
        "predict_bytes": export.sizes.phases()["predict"],
        "ram": export.ram_used,
    }


def milliseconds(board: Board) -> int:
    """Return the board's clock."""
    return int(board.ask("T").split()[-1])


def table_of(found: list[dict[str, Any]]) -> str:
    """Return the table as text."""
    without = found[0]["instructions"]
    rows = []
    for one in found:
        more = one["instructions"] - without
        cost = (
            ["", ""]
            if one["filter"] == "none"
            else [f"{more / 1e6:.1f}", f"{more / CLOCK_HZ * 1e3:.0f}"]
        )
        memory = f"{one['predict_bytes']:,}", f"{one['ram']:,}"
        rows.append([one["filter"], *cost, *memory, "all" if one["equal"] else "no"])
    titles = ["filter", "million instructions", "ms", "bytes of a prediction", "RAM", "equal"]
    return table(titles, rows, left=("filter", "equal"))


def rows_by_name(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the function for the row of each filter."""
    return {name: partial(row_of, name, arguments.data, arguments.out) for name in FILTERS}


def main() -> None:
    """Run the missing rows and print the table."""
    run_benchmark(__doc__, rows_by_name, table_of)


if __name__ == "__main__":
    main()
