"""A board that learns by itself: MCUNet on an emulated Cortex-M7 within a board's memory.

    python benchmarks/learner_on_board.py --data DATA --out runs/learner_on_board [ROW...]

DATA holds the folder cifar-10-batches-bin. The bundled cifar10_mcunet takes labeled images of a
corruption of severity 5 in, one at a time, and learns in all phases; every reply of the board is
compared with the same learner here. The accuracies before and after are on 1,000 test images, by
the learner here, of which the board predicts ten. The time is that of the emulator's instructions,
one a cycle of the board's clock. RAM is what the program for the board itself is linked with. A
stopped run continues: finished rows are read from the folder.

    python benchmarks/learner_on_board.py --table results/learner-on-board.json
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pmt
from pmt._util.text import table
from pmt.firmware.board.memory import linked_sizes, run_make
from pmt.firmware.stream import stream
from pmt.protocol import DataSource
from pmt_lab.files import read_json, spread_json, write_text

MODEL = "cifar10_mcunet"
F746, H7B3 = "stm32f746g-disco", "stm32h7b3i-dk"
CLOCK_HZ = {F746: 216e6, H7B3: 280e6}
TESTED, BY_THE_BOARD = 1000, 10
STATES = ("original", "aligned", "head", "head_alone", "trained")


@dataclass(frozen=True)
class Case:
    """Images, options and board of a row."""

    kind: str = "gaussian_noise"
    samples: int = 32
    board: str = F746
    windows: bool = False
    reliability: bool = False
    keeps_activations: bool = False
    epochs: dict[str, Any] = field(default_factory=dict)


_BLOCK_2 = {"layers": "B2", "epochs": 1, "batch": 1}
_ALL = {"layers": "all", "epochs": 1, "batch": 1, "queries": 2}
CASES = {
    **{
        f"{kind}, {count}": Case(kind, count)
        for count in (32, 256)
        for kind in ("gaussian_noise", "fog", "clean")
    },
    "gaussian_noise, 32, activations outside": Case(keeps_activations=True),
    "gaussian_noise, 32, block 2": Case(epochs=_BLOCK_2),
    "gaussian_noise, 256, block 2": Case(samples=256, epochs=_BLOCK_2),
    "gaussian_noise, 32, windows": Case(board=H7B3, windows=True),
    "gaussian_noise, 32, reliability": Case(board=H7B3, windows=True, reliability=True),
    "gaussian_noise, 32, all layers": Case(board=H7B3, epochs=_ALL),
}


def row_of(case: Case, data: Path, out: Path) -> dict[str, Any]:
    """Return a board's figures."""
    model = pmt.load(MODEL)
    folder = str(data / "cifar-10-batches-bin")
    source = DataSource(folder) if case.kind == "clean" else DataSource(folder, case.kind, 5)
    train = source.load("train", model, limit=case.samples)
    test = source.load("test", model, limit=TESTED)
    learning = {"samples": case.samples, "held_out": case.samples // 4}
    learning |= {"windows": case.windows, "reliability": case.reliability}
    options = pmt.TrainingOptions(**case.epochs) if case.epochs else None
    made = {**learning, "keeps_activations": case.keeps_activations, "options": options}
    project = out / "project"
    export = pmt.export_learner(
        model, target="qemu-mps2-an500", like=case.board, out=project, force=True, **made
    )
    report = stream(project, train, test.take(BY_THE_BOARD), pipe=True, counts=True)
    learner = pmt.Learner(model, **learning, options=options, keeps_confirmed=False)
    before = (learner.predict(test.images).labels == test.labels).mean()
    learner.observe(train.images, train.labels)
    if learner.learn() != "original":
        learner.commit()
    after = (learner.predict(test.images).labels == test.labels).mean()
    return {
        "case": asdict(case),
        "before": float(before),
        "after": float(after),
        "chosen": report.candidate,
        "held_out": {state: accuracy for state, (_, accuracy) in report.scores.items()},
        "equal": report.equal,
        "replies": report.replies,
        "seconds": (report.instructions or 0) / CLOCK_HZ[case.board],
        "arena": report.memory["arena"],
        "external": export.sizes.external,
        "stack": report.memory["stack"],
        **linked(model, case, made, out / "linked"),
    }


def linked(model: pmt.Model, case: Case, made: dict[str, Any], out: Path) -> dict[str, int]:
    """Return the bytes of RAM and flash that the program for the board itself is linked with."""
    if case.keeps_activations:  # this board has no external memory set up
        return {}
    pmt.export_learner(model, target=case.board, out=out, force=True, **made)
    done = run_make(out, "build/fw.elf", "linking took too long")
    if done.returncode != 0:
        raise ChildProcessError(done.stderr)
    sizes = linked_sizes(out / "build" / "fw.elf")
    return {"ram": sizes.ram, "flash": sizes.flash}


def table_of(rows: dict[str, dict[str, Any]]) -> str:
    """Return the tables as text: accuracies, and costs."""

    def share(value: float | None) -> str:
        return "" if value is None else f"{100 * value:.1f}"

    def number(value: int | None) -> str:
        return "" if value is None else f"{value:,}"

    accuracies = [
        [
            name,
            *(share(one["held_out"].get(state)) for state in STATES),
            one["chosen"],
            share(one["before"]),
            share(one["after"]),
        ]
        for name, one in rows.items()
    ]
    costs = [
        [
            name,
            f"{one['seconds']:,.0f}",
            number(int(one["arena"].split()[-1])),
            number(one.get("ram")),
            number(one.get("flash")),
            number(one["external"]),
            "all" if one["equal"] else "no",
        ]
        for name, one in rows.items()
    ]
    titles = ["images", *STATES, "chosen", "before", "after"]
    first = table(titles, accuracies, left=("images", "chosen"))
    titles = ["images", "seconds", "arena", "RAM", "flash", "external", "equal"]
    return f"{first}\n\n{table(titles, costs, left=('images', 'equal'))}"


def main() -> None:
    """Run the missing rows and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("rows", nargs="*", metavar="ROW", help="by default all of them")
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--out", type=Path, help="folder of the projects and of rows.json")
    parser.add_argument("--table", type=Path, help="run nothing; the tables of such a file")
    arguments = parser.parse_args()
    if arguments.table is not None:
        print(table_of(json.loads(arguments.table.read_text())))
        return
    if None in (arguments.data, arguments.out):
        parser.error("--data and --out are needed, or --table alone")
    arguments.out.mkdir(parents=True, exist_ok=True)
    kept = arguments.out / "rows.json"
    rows = read_json(kept, "remove it") if kept.exists() else {}
    for name in arguments.rows or CASES:
        if name not in rows:
            rows[name] = row_of(CASES[name], arguments.data, arguments.out)
            write_text(kept, spread_json(rows, 1) + "\n")
        print(f"{name}: {rows[name]['chosen']}", flush=True)
    print(table_of({name: rows[name] for name in CASES if name in rows}))


if __name__ == "__main__":
    main()
