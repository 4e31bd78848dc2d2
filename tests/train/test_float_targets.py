"""Training on targets: of any size that the output can express, of one output, from files."""

import dataclasses
import re
from typing import Any

import numpy as np
import pytest
from networks import pixels, smooth_network

import pmt
from pmt.cli import main
from pmt.datasets import Dataset, save_npz
from pmt.model.card import CardHeader, read_payload
from pmt.net.graph import Graph

OPTIONS: dict[str, Any] = {"batch": 8, "epochs": 6, "queries": 8, "preparation": "none"}


def scaled(factor: float) -> pmt.Model:
    """A network whose one output is a multiple as large."""
    graph: Graph = smooth_network(classes=1).to_graph()
    head = graph.ops[1]
    assert head.weight_scales is not None
    scales = (head.weight_scales * factor).astype(np.float32)
    graph.ops[1] = dataclasses.replace(head, weight_scales=scales)
    graph.tensors[2] = dataclasses.replace(graph.tensors[2], scale=0.1 * factor)
    return pmt.Model.from_graph(graph)


def fitted(model: pmt.Model, data: Any, **changes: Any) -> pmt.RunResult:
    trainer = pmt.ZOTrainer(**{"loss": "squared_error", **OPTIONS, **changes})
    return trainer.fit(model, data, progress=False)


@pytest.mark.parametrize("factor", [1.0, 30.0, 1000.0])
@pytest.mark.parametrize("end", [-128, 127])
def test_every_target_of_the_output_trains(factor, end):
    model = scaled(factor)
    images = pixels(model, 8)
    target = np.full((8, 1), 0.1 * factor * end, np.float32)
    target[0] *= 0.99
    before = float(((model.logits(images) - target) ** 2).mean())
    result = fitted(model, Dataset.with_targets(images, target))
    losses = [epoch["train_loss"] for epoch in result.epochs]
    assert losses[0] == pytest.approx(before, rel=1e-4)
    assert losses[-1] < losses[0]
    assert result.epochs[0]["changed"] > 0


def test_targets_outside_of_the_range_are_refused():
    model = scaled(10.0)
    images = pixels(model, 4)
    expected = (
        "data set 'targets' holds targets from 0 to 605: loss='squared_error' has a gradient from "
        "-385 to 384 with this model, whose output is -128 to 127; scale the targets, and quantize "
        "a model for them"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        fitted(model, Dataset.with_targets(images, [0, 1, 2, 605]))
    expected = (
        "data set 'targets' holds targets from -0.5 to 1: loss='binary_cross_entropy' takes "
        "probabilities, 0 to 1"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        fitted(model, Dataset.with_targets(images, [0, 1, -0.5, 1]), loss="binary_cross_entropy")


def test_an_output_too_wide_for_any_target_is_refused():
    model = scaled(1e5)
    expected = (
        "data set 'targets' holds targets from 0 to 3: loss='squared_error' takes outputs of at "
        "most 262144 from end to end, and this model's is -1.28e+06 to 1.27e+06; scale the "
        "targets, and quantize a model for them"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        fitted(model, Dataset.with_targets(pixels(model, 4), [0, 1, 2, 3]))


def test_a_network_of_one_output_learns_labels_0_and_1():
    model = smooth_network(classes=1)
    images = pixels(model, 24)
    logits = model.logits(images)[:, 0]
    labels = (logits < np.median(logits)).astype(np.int64)  # the opposite of what it says
    whole = {"loss": "binary_cross_entropy", "epochs": 20, "keep_best": False}
    result = fitted(model, (images, labels), **whole)
    assert result.epochs[-1]["train_loss"] < result.epochs[0]["train_loss"]
    assert "train_accuracy" not in result.epochs[-1]
    assert "acc" not in str(result)
    assert result.notes == []
    result = fitted(model, (images, labels), loss="binary_cross_entropy")
    assert (result.held_out, result.notes) == (5, [])


@pytest.mark.parametrize("loss", ["cross_entropy", "entropy"])
def test_one_output_is_not_compared_with_others(loss):
    model = smooth_network(classes=1)
    expected = (
        f"loss='{loss}' compares outputs with each other, and the model has one; use "
        "loss='binary_cross_entropy' with labels 0 and 1, or one of squared_error, a callable"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        fitted(model, (pixels(model, 8), np.zeros(8, int)), loss=loss)


def test_equal_labels_are_told():
    model = smooth_network(classes=1)
    expected = (
        "all 8 targets of data set 'data' are equal: training teaches the model a constant; add "
        "images with other targets"
    )
    with pytest.warns(UserWarning, match=f"^{re.escape(expected)}$"):
        fitted(model, (pixels(model, 8), np.ones(8, int)), loss="binary_cross_entropy", epochs=1)


@pytest.mark.parametrize(("kind", "classes"), [("targets", 1), ("targets", 3), ("labels", 1)])
def test_the_command_line_trains_on_targets_of_a_file(kind, classes, tmp_path, capsys):
    model = smooth_network(classes=classes)
    model.save(tmp_path / "one.pmt")
    images, values = pixels(model, 24), np.arange(24) % 2
    data = Dataset.from_arrays(images, values)
    if kind == "targets":
        data = Dataset.with_targets(images, np.tile(values[:, None], classes))
    save_npz(data, tmp_path / "data.npz")
    files = ["train", str(tmp_path / "one.pmt"), "--data", str(tmp_path / "data.npz")]
    run = str(tmp_path / "run")
    options = ["--loss", "squared_error", "--epochs", "2", "--batch", "8", "--queries", "2"]
    assert main([*files, *options, "--out", run]) == 0
    titles = [line for line in capsys.readouterr().out.splitlines() if "train loss" in line]
    assert titles == ["     epoch  train loss    changed    forwards       GMAC  seconds"]
    records = pmt.RunFolder(run).metrics.read_text()
    assert "accuracy" not in records
    assert "correct" not in records
    assert main(["show", str(tmp_path / "data.npz"), "--out", str(tmp_path / "sheet.png")]) == 0


def test_the_command_line_refuses_a_loss_before_it_remarks_on_the_run(tmp_path, capsys):
    model = smooth_network(classes=1)
    model.save(tmp_path / "one.pmt")
    images = pixels(model, 12)
    save_npz(Dataset.from_arrays(images, np.arange(12) % 2), tmp_path / "data.npz")
    files = ["train", str(tmp_path / "one.pmt"), "--data", str(tmp_path / "data.npz")]
    assert main([*files, "--out", str(tmp_path / "run")]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    # Not even of the batch, which is larger than these images.
    assert printed.err.startswith(
        "pmt: error: --loss='cross_entropy' compares outputs with each ot"
    )


@pytest.mark.parametrize("classes", [1, 3])
def test_the_command_line_exports_targets_of_a_file(classes, tmp_path):
    model = smooth_network(classes=classes)
    model.save(tmp_path / "one.pmt")
    images = pixels(model, 12)
    targets = np.linspace(-12, 12, 12 * classes, dtype=np.float32).reshape(12, classes)
    save_npz(Dataset.with_targets(images, targets), tmp_path / "data.npz")
    files = [str(tmp_path / "one.pmt"), "--data", str(tmp_path / "data.npz")]
    options = ["--loss", "squared_error", "--steps", "2", "--batch", "3", "--queries", "2"]
    target = ["--target", "qemu-mps2-an500", "--out", str(tmp_path / "fw")]
    assert main(["export", *files, *options, *target]) == 0
    header = CardHeader.unpack((tmp_path / "fw" / "card.img").read_bytes())
    assert header.targets == classes
    payload = read_payload(
        (tmp_path / "fw" / "card.img").read_bytes(), *header.sections["sample_list"]
    )
    rows = np.frombuffer(payload, np.uint8).reshape(header.samples, -1)
    found = np.ascontiguousarray(rows[:, : 4 * classes]).view("<f4")
    assert {tuple(row) for row in found.tolist()} <= {tuple(row) for row in targets.tolist()}
