"""The emulated board finds out which block to train as the host does, and then trains it."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from firmware_tools import (
    TARGET,
    check_linked,
    check_marks,
    emulate,
    make,
    random_dataset,
    share_objects,
)
from networks import residual_network

import pmt
from pmt.firmware.export import ExportReport, export
from pmt.train.choose import select

NAMES = ["B1", "B2+head", "B3"]
# With this rule the candidate that takes most memory is chosen, and the arena is used to its end.
OPTIONS = pmt.preset(
    "default",
    rule="by_dimension",
    nodes="all",
    mu_node=4,
    batch=4,
    queries=6,
    learning_rate=2.0,
    head_rate=3.0,
    epochs=1,
)


def write(out: Path, **arguments: Any) -> ExportReport:
    model = residual_network()
    held_out, train = random_dataset(model, 32).split(0.25, seed=3)
    given = {"candidates": NAMES, "held_out": held_out, "options": OPTIONS, "steps": 6}
    given |= {"target": TARGET, "dataset": train, **arguments}
    return export(model, out=out, **given)


def test_scores_and_choice_are_those_of_pmt_select(tmp_path, firmware_objects):
    report = write(tmp_path / "fw")
    model = residual_network()
    held_out, train = random_dataset(model, 32).split(0.25, seed=3)
    found = select(
        model, train, held_out, options=OPTIONS, candidates=NAMES, progress=False, threads=1
    )
    losses = [candidate.loss for candidate in found.candidates]
    assert len(set(losses)) == 3
    share_objects(firmware_objects, tmp_path / "fw")
    ok, log = emulate(tmp_path / "fw")
    assert log[0] == "select: 3 candidates, 6 steps each, 8 images held out"
    for line, candidate in zip(log[1:4], found.candidates, strict=True):
        loss = np.floor(1e4 * candidate.loss) / 1e4
        right = round(8 * candidate.accuracy)
        assert line == f"{candidate.name}: loss {loss:.4f}, {right} of 8 right, as on the host"
    assert log[4] == f"select: {found.best.name}, as on the host"
    assert report.selection.startswith(f"{found.best.layers}; losses on 8 held-out samples: B1 ")
    assert log[-1] == f"verify: ok (6 steps, {len(report.layers)} layers, 16 activations)"
    assert ok
    check_marks(log, report.arena_bytes, 4096 + 2048)
    check_linked(report)


def test_a_score_that_differs_stops_the_board(tmp_path, firmware_objects):
    write(tmp_path / "fw", steps=1)
    header = tmp_path / "fw" / "model" / "selection.hpp"
    text, changed = re.subn(r'("B3", layers_of_2, \d+, \{)', r"\g<1>1", header.read_text())
    assert changed == 1
    header.write_text(text)
    share_objects(firmware_objects, tmp_path / "fw")
    assert make(tmp_path / "fw").returncode == 0
    run = make(tmp_path / "fw", "qemu")
    assert run.returncode != 0
    assert "not as on the host" in run.stdout
    assert "1 scores differ from the host's" in run.stdout
    assert "verify" not in run.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"candidates": ["B1"]}, "candidates='B1': a choice needs two or more different names"),
        ({"candidates": ["B1", "B9"]}, "'B9' is neither a block"),
        ({"held_out": None}, "candidates and held_out: a choice needs both"),
        ({"layers": "B1"}, "layers='B1': the candidates say which layers to train"),
    ],
)
def test_what_cannot_be_selected_is_refused(tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        write(tmp_path / "fw", **arguments)
    assert list(tmp_path.iterdir()) == []


def test_an_application_that_nobody_changed_follows_the_selection(tmp_path):
    main = tmp_path / "fw" / "app" / "main.cpp"
    plain: dict[str, Any] = {"candidates": None, "held_out": None}
    write(tmp_path / "fw", steps=1, **plain)
    assert "selection.hpp" not in main.read_text()
    write(tmp_path / "fw", steps=1)
    assert '#include "model/selection.hpp"' in main.read_text()
    write(tmp_path / "fw", steps=1, **plain)
    assert "selection.hpp" not in main.read_text()
    changed = main.read_text() + "// mine\n"
    main.write_text(changed)
    with pytest.raises(ValueError, match=r"keeps a changed app/main\.cpp, which is for an export "):
        write(tmp_path / "fw", steps=1)
    write(tmp_path / "fw", steps=1, **plain)
    assert main.read_text() == changed
