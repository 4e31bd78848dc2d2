"""A study's versioned result for a notebook: where it is from, its table and its plot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from pmt._util.text import table
from pmt_lab.reproduce import compared_rows, find_study, results
from pmt_lab.reproduce.page import TITLES, row_cells, summary
from pmt_lab.reproduce.study import Row, Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHOWN = ("", "ours", "95 % interval", "published", "unit", "verdict")
# Columns of the conditions.
_WIDTH = 88


@dataclass(frozen=True)
class StoredStudy:
    """A study with its versioned result, which is None where it has not been run.

    ``folder`` is where results are looked for.
    """

    study: Study
    result: Mapping[str, Any] | None
    folder: Path

    @property
    def rows(self) -> tuple[Row, ...]:
        """Figures beside the published ones; none where it has not been run.

        A ValueError names the file if figures in it are missing or damaged.
        """
        if self.result is None:
            return ()
        where = results.path_of(self.study.name, self.folder)
        return tuple(compared_rows(self.study, self.result, where))

    def __str__(self) -> str:
        title = f"{self.study.item}: {self.study.title}"
        if self.result is None:
            return f"{title}\nnot run yet: `pmt-lab reproduce {self.study.name}` does it"
        made = f"{self.result['scale']} scale, pmt {self.result['pmt']}, {self.result['date']}"
        conditions = fill(self.study.conditions, _WIDTH)
        return "\n".join(filter(None, (title, f"{made}: {summary(self.rows)}", conditions)))

    __repr__ = __str__

    def table(self) -> str:
        """Return the rows that were run as text, without empty columns; empty if none was."""
        ran = [row_cells(row) for row in self.rows if row.ours is not None]
        places = [TITLES.index(name) for name in _SHOWN]
        full = [place for place in places if any(cells[place] for cells in ran)]
        titles = [TITLES[place] for place in full]
        rows = [[cells[place] for place in full] for cells in ran]
        return table(titles, rows, left=("", "unit", "verdict")) if ran else ""

    def plot(self, *, ax: Axes | None = None) -> Axes | None:
        """Draw the study on new axes, or on ``ax``; None where nothing has been run."""
        ran = any(row.ours is not None for row in self.rows)
        if self.result is None or not ran:
            return None
        drawn: Axes = self.study.plot(self.result["data"], ax=ax)
        return drawn

    def plot_losses(self, corruption: str, *, ax: Axes | None = None) -> Axes | None:
        """Draw held-out losses on a corruption over multiply-accumulates, on new axes or ``ax``.

        There is a curve for each line of the table that takes steps, of its first seed. None where
        nothing has been run, or the study has no table of corruptions; a ValueError says that no
        line was run on this one.
        """
        if self.result is None or self.study.plot_losses is None:
            return None
        drawn: Axes = self.study.plot_losses(self.result["data"], corruption, ax=ax)
        return drawn


def stored(name: str, folder: str | Path | None = None) -> StoredStudy:
    """Return a study, such as ``"cifar10c-accuracy"``, with its versioned result.

    The folder of results is by default ``lab/results`` of the checkout, else the installed copy of
    it. A ValueError says that there is no such study, or its file is damaged.
    """
    study = find_study(name)
    place = results.results_folder() if folder is None else Path(folder)
    try:
        return StoredStudy(study, results.load(name, place), place)
    except FileNotFoundError:
        return StoredStudy(study, None, place)
