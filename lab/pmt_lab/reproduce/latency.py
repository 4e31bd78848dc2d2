"""Latency of a step, projected from counted instructions, beside a measured one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pmt_lab.reproduce.study import Row, beside, not_run, projected

__all__ = ["ITERATIONS", "latency_rows"]

# 1,000 images, one per step, 50 epochs: the paper's end-to-end times are its latencies times this.
ITERATIONS = 50_000
_NO_BOARD = "no board was measured"


def latency_rows(
    counted: Mapping[str, Any] | None, paper: Mapping[str, Any], key: str
) -> list[Row]:
    """Return the rows of BP-free latency and time, which are printed as ``KEY_ms`` and ``KEY_s``.

    A projection is not a measurement: the verdict of its rows says so.
    """
    forwards, printed = "BP-free step over an inference", paper[f"{key}_ms"]
    if counted is None:
        why = f"{_NO_BOARD}; to count instructions needs arm-none-eabi-g++ and qemu-system-arm"
        return [
            not_run("BP-free latency", printed, "ms", why),
            not_run("BP-free end-to-end time", paper[f"{key}_s"], "s", why),
            not_run(forwards, None, "forwards", why),
        ]
    milliseconds = counted["step"] / counted["megahertz"] / 1e3
    why = (
        f"{_NO_BOARD}: {counted['step']:,} instructions counted under QEMU, projected at one a "
        f"cycle of {counted['megahertz']:.0f} MHz"
    )
    return [
        projected("BP-free latency", milliseconds, printed, "ms", why=why),
        projected(
            "BP-free end-to-end time",
            milliseconds * ITERATIONS / 1e3,
            paper[f"{key}_s"],
            "s",
            why=f"{why}, times {ITERATIONS:,} steps",
        ),
        beside(
            forwards,
            counted["step"] / counted["forward"],
            "forwards",
            why="in instructions; the paper's latency is "
            + " or ".join(f"{printed / ms:.1f} times the {ms} ms" for ms in paper["inference_ms"])
            + " of its inference, which it prints twice",
        ),
    ]
