"""The work of a run besides its steps grows with its epochs, not with their square."""

from __future__ import annotations

import sys
from pathlib import Path

from networks import residual_network
from toy_trainer import Toy, data, flat

import pmt
from pmt.cli.output import EpochLines, Output

PACKAGE = str(Path(pmt.__file__).parent)


def instructions_of(call) -> int:
    """The bytecode instructions of pmt that a call runs."""
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def run(epochs: int, out: Path) -> None:
    model = residual_network()
    # The first one is the best: whoever looks for it from the end looks through all.
    trainer = Toy(epochs=epochs, losses=[(0.5, 0.9), *flat(epochs)])
    lines = EpochLines(pmt.RunFolder(out), trainer.schedule(model, 8), Output(None))
    trainer.fit(model, data(8), held_out=data(5), out=out, progress=lines.after_step)
    lines.finish()


def test_twice_the_epochs_are_twice_the_work(tmp_path):
    run(1, tmp_path / "first")  # imports
    work = {n: instructions_of(lambda n=n: run(n, tmp_path / str(n))) for n in (10, 60, 110)}
    assert work[110] - work[60] < 1.02 * (work[60] - work[10])
