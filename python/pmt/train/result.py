"""The result of a training run: its history, as text, HTML and a plot."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pmt._util.extras import import_extra, load_pyplot
from pmt.model import Model

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["RunResult"]

_COLUMNS = (
    ("epoch", "epoch", "{}"),
    ("train loss", "train_loss", "{:.4f}"),
    ("train acc", "train_accuracy", "{:.3f}"),
    ("valid loss", "valid_loss", "{:.4f}"),
    ("valid acc", "valid_accuracy", "{:.3f}"),
    ("changed", "changed", "{:d}"),
    ("forwards", "forwards", "{:d}"),
    ("seconds", "seconds", "{:.1f}"),
)


@dataclass
class RunResult:
    """Outcome of a run.

    Attributes
    ----------
    model : Model
        The trained model.
    epochs : list of dict
        One record an epoch: ``epoch`` (a fraction at the end of a run whose budget ends within
        one), ``train_loss`` and ``train_accuracy`` (before each step's
        update, over the epoch), ``valid_loss`` and ``valid_accuracy`` (where validation data was
        given), ``changed`` weights, ``forwards`` (perturbed forwards so far, of a suffix of the
        network each), ``macs`` (of all forwards so far), ``seconds``.
    before : dict
        ``valid_loss`` and ``valid_accuracy`` before training, if they were measured.
    folder : pathlib.Path or None
        The run folder.
    best : dict
        With ``keep_best=True`` the record of the best epoch, ``epoch`` 0 for the untrained model.
    best_image : bytes or None
        The model of that epoch, see :meth:`best_model`.
    """

    model: Model
    epochs: list[dict[str, Any]]
    before: dict[str, float] = field(default_factory=dict)
    folder: Path | None = None
    best: dict[str, Any] = field(default_factory=dict)
    best_image: bytes | None = None

    def best_model(self) -> Model:
        """Return the model with the least loss on the held-out data.

        Raises
        ------
        ValueError
            If the run did not keep it.
        """
        if self.best_image is None:
            raise ValueError("no best model was kept; use fit(..., valid=..., keep_best=True)")
        return Model(self.best_image)

    def _rows(self) -> tuple[list[str], list[list[str]]]:
        columns = [c for c in _COLUMNS if any(c[1] in record for record in self.epochs)]
        start = [{"epoch": "start", **self.before}] if self.before else []

        def cell(record: dict[str, Any], key: str, form: str) -> str:
            value = record.get(key, "-")
            return value if isinstance(value, str) else form.format(value)

        rows = [
            [cell(record, key, form) for _, key, form in columns]
            for record in [*start, *self.epochs]
        ]
        return [title for title, _, _ in columns], rows

    def __str__(self) -> str:
        titles, rows = self._rows()
        widths = [max(len(row[i]) for row in [titles, *rows]) for i in range(len(titles))]
        lines = [titles, *rows]
        return "\n".join(
            "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
            for line in lines
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        titles, rows = self._rows()
        head = "".join(f"<th>{title}</th>" for title in titles)
        body = "".join(
            "<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Plot loss (left axis) and accuracy (right axis) over epochs.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; new ones by default.

        Returns
        -------
        matplotlib.axes.Axes
            The axes of the loss.

        Raises
        ------
        ImportError
            If matplotlib is missing.
        """
        plt = load_pyplot()
        ticker = import_extra("matplotlib.ticker", "plots need matplotlib", "plot")
        if ax is None:
            _, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
        right = ax.twinx()
        for name, style in (("train", "--"), ("valid", "-")):
            records = [r for r in self.epochs if f"{name}_loss" in r]
            if not records:
                continue
            x = [r["epoch"] for r in records]
            loss = [r[f"{name}_loss"] for r in records]
            accuracy = [r[f"{name}_accuracy"] for r in records]
            if name == "valid" and self.before:
                x = [0, *x]
                loss = [self.before["valid_loss"], *loss]
                accuracy = [self.before["valid_accuracy"], *accuracy]
            ax.plot(x, loss, style, color="tab:blue", marker=".", label=f"{name} loss")
            right.plot(x, accuracy, style, color="tab:orange", marker=".", label=f"{name} accuracy")
        ax.set_xlabel("epoch")
        ax.set_ylabel("cross-entropy (nats)", color="tab:blue")
        ax.set_ylim(bottom=0)
        right.set_ylabel("accuracy", color="tab:orange")
        right.set_ylim(0, 1)
        handles = [*ax.get_legend_handles_labels()[0], *right.get_legend_handles_labels()[0]]
        ax.legend(
            handles=handles,
            loc="upper center",
            bbox_to_anchor=(0.5, -0.16),
            ncols=4,
            fontsize="small",
            frameon=False,
        )
        ax.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
        return ax
