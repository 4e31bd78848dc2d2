"""The columns of a run's history: the same in the table of a result and under `pmt train`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

__all__ = ["Column", "columns"]


class Column(NamedTuple):
    """A column: its title, the entry of a record, its least width and its format."""

    title: str
    key: str
    width: int
    form: str

    def cell(self, record: Mapping[str, Any], missing: str) -> str:
        """Return the text of a record of a phase or an epoch: a state's name, work in GMAC."""
        if self.key == "epoch":
            return str(record.get("epoch", record.get("phase", "start")))
        if self.key not in record:
            return missing
        value = record[self.key]
        return self.form.format(value / 1e9 if self.key == "macs" else value)


def columns(records: Iterable[Mapping[str, Any]], watched: str = "valid") -> list[Column]:
    """Return the columns; that of cross-validation only where one of the records has it.

    ``watched`` is the word for the images that are watched.
    """
    found = [
        Column("epoch", "epoch", 7, "{}"),
        Column("train loss", "train_loss", 10, "{:.4f}"),
        Column("train acc", "train_accuracy", 9, "{:.4f}"),
        Column("out-of-fold", "out_of_fold_loss", 11, "{:.4f}"),
        Column("held-out", "held_out_loss", 8, "{:.4f}"),
        Column(f"{watched} loss", "valid_loss", 9, "{:.4f}"),
        Column(f"{watched} acc", "valid_accuracy", 8, "{:.4f}"),
        Column("changed", "changed", 9, "{:,}"),
        Column("forwards", "forwards", 10, "{:,}"),
        Column("GMAC", "macs", 9, "{:,.1f}"),
        Column("seconds", "seconds", 7, "{:.1f}"),
    ]
    if any("out_of_fold_loss" in record for record in records):
        return found
    return [column for column in found if column.key != "out_of_fold_loss"]
