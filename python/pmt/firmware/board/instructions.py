"""Instructions that a model's ops and a training step take on a Cortex-M7, counted by QEMU."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pmt import _core
from pmt._util.checks import checked_word
from pmt._util.native_files import firmware_folder
from pmt.firmware.board.memory import MAKE_SECONDS, need_programs, run_make, write_changes
from pmt.firmware.export.layout import (
    fill_in,
    image_values,
    link_script,
    source_files,
    templates,
    training_values,
)
from pmt.firmware.export.target import find_target
from pmt.model import Model
from pmt.train.costs.work import zeroth_order_work
from pmt.train.options import TrainingOptions

KERNELS = ("arm_dsp", "portable")
# Parts of a step that are forwards; the others are what training adds.
_FORWARD_PARTS = ("layers", "other_ops")
# The common code of the firmware but for the training session.
_COMMON = {
    f"common/{name}"
    for name in (
        *("board.hpp", "log.cpp", "log.hpp"),
        *("memory.cpp", "semihosting.cpp", "semihosting.hpp"),
    )
}
_TARGET = "qemu-mps2-an500"


@dataclass(frozen=True)
class OpInstructions:
    """One op of the forward: name, kind, multiply-accumulates, and instructions."""

    name: str
    kind: str
    macs: int
    instructions: int


@dataclass(frozen=True)
class Instructions:
    """Instructions that one set of kernels takes."""

    kernels: str  # one of `KERNELS`
    ops: tuple[OpInstructions, ...]  # the forward on whole activations, op by op
    # Instructions and calls of each part of a training step of one image, as the firmware runs it:
    # the first layers in line buffers; empty where none was asked for.
    step: dict[str, tuple[int, int]]
    main_pass: int  # instructions of a forward as a step runs it; 0 where none was asked for
    # Instructions of all forwards of a step, were each op run as in `ops`; 0 where none was asked
    # for.
    whole_forwards: int

    @property
    def layers(self) -> tuple[OpInstructions, ...]:
        """Ops with weights."""
        return tuple(op for op in self.ops if op.macs > 0)

    @property
    def forward(self) -> int:
        """Instructions of the forward."""
        return sum(op.instructions for op in self.ops)

    @property
    def step_total(self) -> int:
        """Instructions of the step."""
        return sum(instructions for instructions, _ in self.step.values())

    @property
    def step_forwards(self) -> int:
        """Instructions of the kernels of the step's forwards, with line buffers and restarts."""
        return sum(self.step[part][0] for part in _FORWARD_PARTS)

    def to_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        step = {part: {"instructions": n, "calls": calls} for part, (n, calls) in self.step.items()}
        return {
            "kernels": self.kernels,
            "forward_instructions": self.forward,
            "ops": [vars(op) for op in self.ops],
            "step": step,
            "main_pass_instructions": self.main_pass,
            "whole_forwards_instructions": self.whole_forwards,
        }


def count_instructions(
    model: Model, *, kernels: Sequence[str] = KERNELS[:1], options: TrainingOptions | None = None
) -> tuple[Instructions, ...]:
    """Build the core for a Cortex-M7 with the model, and count in QEMU, for each set of kernels.

    With ``options``, a training step of one image is counted, too. With ``-icount`` QEMU's virtual
    time is the number of instructions, so that the counts are the same on every run and every
    machine. They are not cycles: a Cortex-M7 executes up to two instructions in one, and waits for
    memory. A ValueError says that a set of kernels is unknown or a layer does not exist; a
    FileNotFoundError, ChildProcessError or TimeoutError that compiler or emulator are missing, fail
    or take too long, or that the model does not fit 4 MB of flash and of RAM.
    """
    for name in kernels:
        checked_word("kernels", name, KERNELS)
    need_programs("instructions are counted", "arm-none-eabi-g++", "qemu-system-arm", "make")
    with tempfile.TemporaryDirectory(prefix="pmt-instructions-") as name:
        folder = Path(name)
        write_changes(folder, _project(model, kernels, options))
        lines = [line.split() for line in _run(folder).splitlines()]
    _check_outputs(lines)
    return tuple(_parse(model, kernel, lines, options) for kernel in kernels)


def _project(
    model: Model, kernels: Sequence[str], options: TrainingOptions | None
) -> dict[str, bytes]:
    """Return the files of the program that counts: name -> content."""
    firmware, image = firmware_folder(), model.image()
    target = find_target(_TARGET)
    training: tuple[_core.Options, list[int]] = (_core.Options(), [])
    if options is not None:
        training = (options.to_core(), model.select_layers(options.layers))
    values = {
        **image_values(image),
        "PORTABLE": str("portable" in kernels).lower(),
        "DEVICE": str("arm_dsp" in kernels).lower(),
        **training_values(model.core, *training),
    }
    own = {path.name: path.read_bytes() for path in (firmware / "instructions").iterdir()}
    own["task.hpp"] = fill_in(own.pop("task.hpp.in"), values)
    own["link.ld"] = link_script(target)
    return {
        "Makefile": own.pop("Makefile"),
        "image.S": fill_in(templates("project")["model/image.S"].read_bytes(), values),
        "model/model.pmt": image,
        **{f"instructions/{name}": content for name, content in own.items()},
        **{
            name: content
            for name, content in source_files(target).items()
            if name.startswith(("core/", "drivers/")) or name in _COMMON
        },
    }


def _run(folder: Path) -> str:
    """Build and run the program; return its output."""
    late = f"counting took longer than {MAKE_SECONDS} s; take fewer queries"
    done = run_make(folder, "run", late)
    if done.returncode != 0:
        reason = [line for line in done.stdout.splitlines() if line.startswith("error: ")]
        raise ChildProcessError(
            "the instructions could not be counted: " + (reason or [done.stderr.strip()])[-1]
        )
    return done.stdout


def _check_outputs(lines: Sequence[Sequence[str]]) -> None:
    """Refuse counts of kernels that do not compute the same."""
    checksums: dict[str, str] = {}
    for words in lines:
        if words and words[0] == "op" and checksums.setdefault(words[1], words[4]) != words[4]:
            raise ChildProcessError(f"op {words[1]}: the kernels' outputs differ")


def _parse(
    model: Model, kernels: str, lines: Sequence[Sequence[str]], options: TrainingOptions | None
) -> Instructions:
    counted = {int(w[1]): int(w[3]) for w in lines if w and w[0] == "op" and w[2] == kernels}
    step = {w[1]: (int(w[3]), int(w[4])) for w in lines if w and w[0] == "step" and w[2] == kernels}
    passes = [int(w[2]) for w in lines if w and w[0] == "pass" and w[1] == kernels]
    ops = tuple(
        OpInstructions(op["name"], op["kind"], op["macs"], counted[op["index"]])
        for op in model.core.ops()
    )
    whole = 0
    if options is not None:
        taken = [op.instructions for op in ops]
        layers = model.select_layers(options.layers)
        work = zeroth_order_work(model.core, options.to_core(), layers, of_ops=taken)
        whole = work.forward + work.queries + work.reforwards
    return Instructions(kernels, ops, step, sum(passes), whole)
