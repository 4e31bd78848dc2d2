"""The table of a run's history: the same columns of a result and under `pmt train`."""

from __future__ import annotations

from networks import residual_network

import pmt
from pmt.train.run.result import columns

START = {
    "kind": "start",
    "phase": "start",
    "held_out_loss": 1.25,
    "valid_loss": 1.5,
    "valid_accuracy": 0.25,
    "macs": 0,
}
EPOCH = {
    "epoch": 1.5,
    "train_loss": 0.5,
    "train_accuracy": 0.12345,
    "held_out_loss": 1.0,
    "valid_loss": 1.25,
    "valid_accuracy": 0.5,
    "changed": 1234,
    "forwards": 64000,
    "macs": 1_234_560_000_000,
    "seconds": 2.25,
}
TITLES = (
    *("epoch", "train loss", "train acc", "held-out", "valid loss", "valid acc", "changed"),
    *("forwards", "GMAC", "seconds"),
)
CELLS = (
    *("1.5", "0.5000", "0.1235", "1.0000", "1.2500", "0.5000", "1,234", "64,000", "1,234.6"),
    "2.2",
)


def test_titles_and_digits():
    found = columns([START, EPOCH])
    assert tuple(column.title for column in found) == TITLES
    assert tuple(column.cell(EPOCH, "") for column in found) == CELLS
    assert [column.cell(START, "-") for column in found][:4] == ["start", "-", "-", "1.2500"]
    watched = [column.title for column in columns([START], watched="test")]
    assert watched[4:6] == ["test loss", "test acc"]


def test_cross_validation_has_a_column_where_it_judged():
    judged = {**START, "out_of_fold_loss": 1.125}
    titles = [column.title for column in columns([judged, EPOCH])]
    assert titles[2:5] == ["train acc", "out-of-fold", "held-out"]
    result = pmt.RunResult(residual_network(), [EPOCH], [judged])
    assert str(result).splitlines()[:2] == [
        "epoch  train loss  train acc  out-of-fold  held-out  valid loss  valid acc  changed  "
        "forwards     GMAC  seconds",
        "start           -          -       1.1250    1.2500      1.5000     0.2500        -  "
        "       -      0.0        -",
    ]
