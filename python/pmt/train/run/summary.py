"""A run folder in a few rows: whose run it is, how far it is and what came out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pmt.train.run.folder import RunFolder

__all__ = ["summary_rows"]


def summary_rows(folder: RunFolder) -> list[list[str]]:
    """Return names and values; of a folder that cannot be read, only the reason."""
    if not folder.exists():
        return [["state", "holds no run"]]
    try:
        options, source = folder.read_config()
        records = folder.read_metrics()
        trainer = folder.trainer()
    except (ValueError, OSError) as error:
        return [["state", f"cannot be read: {error}"]]
    rows = {"trainer": trainer, **{name: value for name, value in source.items() if value}}
    # These tell most runs apart; config.toml has all options. A budget of MACs replaces the epochs.
    for name in ("layers", "macs" if options.macs else "epochs", "seed"):
        rows[name] = getattr(options, name, "")
    steps = sum(record["kind"] == "step" for record in records)
    rows["state"] = f"{'finished' if folder.done else 'not finished'}, {steps:,} steps"
    for when, record in _evaluations(records):
        rows[when] = f"loss {record['valid_loss']:.4f}, accuracy {record['valid_accuracy']:.4f}"
    return [[name, str(value)] for name, value in rows.items() if value != ""]


def _evaluations(records: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """Return the first evaluation of the validation images, and that of the folder's model."""
    found = [record for record in records if "valid_loss" in record]
    starts = [("before training", record) for record in found if record["kind"] == "start"]
    states = [record for record in found if record["kind"] in ("start", "phase", "epoch")]
    kept = [record for record in states if record.get("best")][-1:]
    ends = [record for record in found if record["kind"] == "refit"] or kept or states[-1:]
    names = [
        f"epoch {end['epoch']}" if "epoch" in end else end.get("phase", "start") for end in ends
    ]
    return [*starts[:1], *zip(names, ends, strict=True)]
