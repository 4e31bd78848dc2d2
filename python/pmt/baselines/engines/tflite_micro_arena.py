"""The memory of TensorFlow Lite Micro's interpreter for a network."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

import numpy as np

from pmt.baselines.engines.tflite_micro import interpreter_package

__all__ = ["MicroArena", "micro_arena"]

# So many times the file and all activations are beyond any network's needs.
_ROOM = 10
_STDERR = 2


@dataclass(frozen=True)
class MicroArena:
    """Bytes of the interpreter's arena.

    Attributes
    ----------
    activations : int
        Its head: activations and kernels' scratch, planned with their lifetimes.
    bookkeeping : int
        Its tail: tensors, operators, and what kernels prepare; with pointers of this machine.
    """

    activations: int
    bookkeeping: int

    @property
    def total(self) -> int:
        """All of it; with 16 bytes less the interpreter refuses to run."""
        return self.activations + self.bookkeeping


def micro_arena(content: bytes, activations: int) -> MicroArena:
    """Run a network once, and read what the interpreter says that it has taken.

    Parameters
    ----------
    content : bytes
        A ``.tflite`` with int8 in and out.
    activations : int
        Bytes of all activations together, to make an arena that suffices.

    Returns
    -------
    MicroArena
        The interpreter's own record.

    Raises
    ------
    ImportError
        If the package tflite_micro is missing.
    ValueError
        If it cannot run the file.
    """
    runtime = interpreter_package()
    room = _ROOM * 16 * ((len(content) + activations) // 16 + 1)  # the tail is aligned from the end
    with tempfile.TemporaryFile() as log:
        failure = None
        with _standard_error(log):
            try:
                interpreter = runtime.Interpreter.from_bytes(content, arena_size=room)
                shape = interpreter.get_input_details(0)["shape"]
                interpreter.set_input(np.zeros(shape, np.int8), 0)
                interpreter.invoke()
                interpreter.print_allocations()
            except RuntimeError as error:
                failure = error
        log.seek(0)
        printed = log.read().decode(errors="replace")
    if failure is not None:
        reason = " ".join([str(failure), *printed.split("\n")[:1]])
        raise ValueError(f"TensorFlow Lite Micro cannot run the network: {reason}") from failure
    found = dict(re.findall(r"Arena allocation (head|tail) (\d+) bytes", printed))
    if len(found) < 2:
        raise ValueError("this version of tflite_micro does not print what its arena holds")
    return MicroArena(int(found["head"]), int(found["tail"]))


@contextmanager
def _standard_error(file: IO[bytes]) -> Iterator[None]:
    """Lead the process's standard error, which the interpreter prints to, into a file."""
    sys.stderr.flush()
    kept = os.dup(_STDERR)
    try:
        os.dup2(file.fileno(), _STDERR)
        yield
    finally:
        os.dup2(kept, _STDERR)
        os.close(kept)
