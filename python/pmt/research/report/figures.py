"""Numbers as a table shows them: accuracies in %, losses in nats, costs in powers of ten."""

from __future__ import annotations

from pmt.research.report.pivot import Cell

__all__ = ["Figures"]


class Figures:
    """How the values of one metric are written.

    Parameters
    ----------
    metric : str
        One of :data:`pmt.research.report.METRICS`.
    spread : {"std", "range"}
        What stands beside the mean: the standard deviation over seeds, or the least and largest.
    """

    def __init__(self, metric: str, spread: str = "std") -> None:
        self.metric = metric
        self.spread = spread
        self._scale, self._digits, self.unit = _unit(metric)

    @property
    def title(self) -> str:
        """The metric and its unit: ``"test accuracy in %"``."""
        return f"{self.metric.replace('_', ' ')} in {self.unit}"

    def value(self, value: float, *, sign: bool = False) -> str:
        """Write one value."""
        text = f"{value * self._scale:{'+' if sign else ''},.{self._digits}f}"
        if text.startswith("-") and float(text.replace(",", "")) == 0.0:
            return text.replace("-", "+" if sign else "", 1)
        return text

    def interval(self, ends: tuple[float, float] | None, *, sign: bool = False) -> str:
        """Write an interval; nothing without one."""
        if ends is None:
            return ""
        return f"({self.value(ends[0], sign=sign)}..{self.value(ends[1], sign=sign)})"

    def spread_of(self, cell: Cell) -> str:
        """Write the spread over seeds; nothing with fewer than two."""
        if len(cell.values) < 2 or cell.deviation is None:
            return ""
        if self.spread == "range":
            return f"[{self.value(min(cell.values))}..{self.value(max(cell.values))}]"
        return f"± {self.value(cell.deviation)}"


def _unit(metric: str) -> tuple[float, int, str]:
    if metric.endswith("accuracy"):
        return 100.0, 1, "%"
    if metric.endswith("loss"):
        return 1.0, 3, "nats"
    if metric == "macs":
        return 1e-9, 0, "GMAC"
    if metric.endswith("seconds"):
        return 1.0, 0, "s"
    return 1.0, 0, "forwards of a suffix"
