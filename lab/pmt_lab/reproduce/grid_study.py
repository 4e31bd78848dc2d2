"""A study whose figures come from sweeps: how it is measured and forecast."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pmt_lab.reproduce.grid_runs import forecast_grids, measure_grids
from pmt_lab.reproduce.study import Context, Forecast, Row, Scale, Study
from pmt_lab.reproduce.study_grids import cifar10_grid
from pmt_lab.sweep import Grid

__all__ = ["grid_study"]

Data = Mapping[str, Any]
Grids = Callable[[Scale, Context], Mapping[str, Grid]]


def grid_study(
    name: str,
    item: str,
    title: str,
    grids: tuple[str, ...] | Grids,
    compare: Callable[[Data, Data], list[Row]],
    plot: Callable[..., Any] | None = None,
    plot_losses: Callable[..., Any] | None = None,
    conditions: str = "",
) -> Study:
    """Return a study of sweeps.

    Parameters
    ----------
    name, item, title : str
        See :class:`Study`.
    grids : tuple of str or callable
        Names of grids on CIFAR-10-C, or ``grids(scale, context)``, which returns grids by name.
    compare, plot, plot_losses : callable
        See :class:`Study`.
    conditions : str
        See :class:`Study`.
    """

    def made(scale: Scale, context: Context) -> Mapping[str, Grid]:
        if callable(grids):
            return grids(scale, context)
        return {grid: cifar10_grid(grid, scale, context) for grid in grids}

    def measure(scale: Scale, context: Context) -> dict[str, Any]:
        return measure_grids(made(scale, context), context)

    def forecast(scale: Scale, context: Context) -> Forecast:
        return forecast_grids(made(scale, context), context)

    return Study(name, item, title, measure, compare, plot, forecast, plot_losses, conditions)
