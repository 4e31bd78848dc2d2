"""Instructions of a training step on the emulated processor of the paper's boards."""

from __future__ import annotations

import shutil
import sys
from typing import Any

from pmt._util.parsing import parse_json
from pmt._util.processes import run_process
from pmt_lab.reproduce.kept_parts import find_kept, kept
from pmt_lab.reproduce.study import Context

__all__ = ["counted_instructions"]

_TOOLS = ("arm-none-eabi-g++", "make", "qemu-system-arm")


def counted_instructions(
    network: str, layers: str, queries: int, target: str, context: Context
) -> dict[str, Any] | None:
    """Count a forward and a step of one image with the paper's method.

    None without the tools, or where nothing is to be done and it was not counted before.

    The command `pmt profile --instructions` does it: emulation belongs to firmware, which is no
    part of research. Its figures are kept in the study's folder.
    """
    name = f"instructions_{network}_{layers}_{queries}"
    words = ["profile", network, "--instructions", "--method", "paper", "--layers", layers]
    words += ["--queries", str(queries), "--target", target]
    of = {"command": words}
    if find_kept(context.folder, name, of) is None:
        if context.collect or any(shutil.which(tool) is None for tool in _TOOLS):
            return None
        context.tell(f"pmt {' '.join(words)}")
    return kept(context.folder, name, of, lambda: _counted(words, target))


def _counted(words: list[str], target: str) -> dict[str, Any]:
    command = f"pmt {' '.join(words)}"
    made = run_process([sys.executable, "-m", "pmt", *words, "--json", "-"], command)
    figures = parse_json(made.encode(), command)
    counts = figures["instructions"][0]
    return {
        "target": target,
        "megahertz": figures["latency"]["clock_mhz"],
        "kernels": counts["kernels"],
        "forward": counts["forward_instructions"],
        "step": sum(part["instructions"] for part in counts["step"].values()),
    }
