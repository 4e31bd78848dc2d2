"""How many threads to use where the caller leaves it open."""

from __future__ import annotations

import multiprocessing
import os

__all__ = ["thread_count"]


def thread_count(requested: int) -> int:
    """Resolve a number of threads.

    Parameters
    ----------
    requested : int
        0 leaves the choice to pmt.

    Returns
    -------
    int
        ``requested`` where it is positive. Else 1 in a worker of a process pool, which shares the
        machine with its siblings, unless ``OMP_NUM_THREADS`` says how many it has; else 0, all that
        the core sees. In a process forked after several threads were used the core runs on one,
        whatever is asked for.

    Raises
    ------
    ValueError
        If ``requested`` is negative.
    """
    if requested < 0:
        raise ValueError(f"threads must be 0 (all) or more; got {requested}")
    in_a_pool = multiprocessing.parent_process() is not None
    if requested == 0 and in_a_pool and not os.environ.get("OMP_NUM_THREADS"):
        return 1
    return requested
