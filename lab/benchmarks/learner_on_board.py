r"""A board that learns by itself: MCUNet on an emulated Cortex-M7 within the STM32F746's memory.

    python benchmarks/learner_on_board.py --data DATA --out runs/learner_on_board

DATA holds the folder cifar-10-batches-bin. The bundled cifar10_mcunet takes 32 or 256 labeled
images of a corruption of severity 5 in, one at a time, and learns in all phases; every reply of the
board is compared with the same learner here. The accuracies before and after are on 1,000 test
images, by the learner here, of which the board predicts ten. The time is that of the emulator's
instructions, one a cycle of 216 MHz; in one row external memory keeps activations. A stopped run
continues: finished rows are read from the folder.

    python benchmarks/learner_on_board.py --table results/learner-on-board.json
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import pmt
from pmt._util.text import table
from pmt.firmware.export import export_learner
from pmt.firmware.stream import stream
from pmt.protocol import DataSource
from pmt_lab.kept_benchmark import run_benchmark

KINDS = ("gaussian_noise", "fog", "clean")
SIZES = (32, 256)
TESTED, BY_THE_BOARD = 1000, 10
CLOCK_HZ = 216e6


def row_of(kind: str, size: int, data: Path, out: Path, keeps: bool = False) -> dict[str, Any]:
    """Return a board's figures on some images of a corruption."""
    model = pmt.load("cifar10_mcunet")
    folder = str(data / "cifar-10-batches-bin")
    source = DataSource(folder) if kind == "clean" else DataSource(folder, kind, 5)
    train = source.load("train", model, limit=size)
    test = source.load("test", model, limit=TESTED)
    project = out / (f"{kind}-{size}" + ("-external" if keeps else ""))
    export = export_learner(
        model,
        target="qemu-mps2-an500",
        like="stm32f746g-disco",
        out=project,
        samples=size,
        held_out=size // 4,
        keeps_activations=keeps,
        force=True,
    )
    report = stream(project, train, test.take(BY_THE_BOARD), pipe=True, counts=True)
    learner = pmt.Learner(model, samples=size, held_out=size // 4, keeps_confirmed=False)
    before = (learner.predict(test.images).labels == test.labels).mean()
    learner.observe(train.images, train.labels)
    if learner.learn() != "original":
        learner.commit()
    after = (learner.predict(test.images).labels == test.labels).mean()
    return {
        "kind": kind,
        "size": size,
        "before": float(before),
        "after": float(after),
        "candidate": report.candidate,
        "held_out": {state: accuracy for state, (_, accuracy) in report.scores.items()},
        "equal": report.equal,
        "replies": report.replies,
        "seconds": (report.instructions or 0) / CLOCK_HZ,
        "arena": report.memory["arena"],
        "external": export.sizes.external,
        "stack": report.memory["stack"],
    }


def table_of(found: list[dict[str, Any]]) -> str:
    """Return the table as text."""

    def share(value: float | None) -> str:
        return "" if value is None else f"{100 * value:.1f}"

    states = ("original", "aligned", "head", "head_alone")
    rows = [
        [
            f"{one['kind']}, {one['size']}",
            *(share(one["held_out"].get(state)) for state in states),
            one["candidate"],
            share(one["before"]),
            share(one["after"]),
            f"{one['seconds']:,.0f}",
            f"{int(one['arena'].split()[-1]):,}",
            f"{one['external']:,}",
            "all" if one["equal"] else "no",
        ]
        for one in found
    ]
    titles = ["images", *states, "chosen", "before", "after", "seconds"]
    memory = ["arena", "external", "equal"]
    return table([*titles, *memory], rows, left=("images", "chosen", "equal"))


def rows_by_name(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the function for each row."""
    place = (arguments.data, arguments.out)
    rows = {
        f"{kind}-{size}": partial(row_of, kind, size, *place) for size in SIZES for kind in KINDS
    }
    kept = partial(row_of, KINDS[0], SIZES[0], *place, keeps=True)
    return {**rows, f"{KINDS[0]}-{SIZES[0]}-external": kept}


def main() -> None:
    """Run the missing rows and print the table."""
    run_benchmark(__doc__, rows_by_name, table_of)


if __name__ == "__main__":
    main()
