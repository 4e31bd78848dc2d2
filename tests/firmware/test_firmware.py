"""The emulated Cortex-M7 trains the bytes that the host trains."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from firmware_tools import TARGET, check_marks, emulate, random_dataset
from networks import residual_network

import pmt
from pmt import _core
from pmt.datasets import Dataset
from pmt.firmware.export import export
from pmt.firmware.export.card import compute_expected
from pmt.firmware.export.task import make_task
from pmt.model import Model


def check_same_bytes(
    folder: Path,
    model: Model,
    data: Dataset,
    options: pmt.TrainingOptions,
    *make_arguments: str,
    inferences: int = 2,
    **budgets: Any,
) -> list[str]:
    """Export, train on both sides, compare everything; return the estimators' names."""
    report = export(
        model,
        target=TARGET,
        out=folder,
        dataset=data,
        options=options,
        inferences=inferences,
        steps=5,
        **budgets,
    )
    ok, log = emulate(folder, *make_arguments)
    activations = inferences * model.core.op_count
    layers = len(report.layers)
    assert log[-1] == f"verify: ok (5 steps, {layers} layers, {activations} activations)", log
    assert ok
    assert data.has_targets != any("accuracy" in line for line in log)
    check_marks(log, report.arena_bytes, report.stack_bytes)
    task = make_task(model, dataset=data, options=options, steps=5, inferences=0)
    expected = compute_expected(task)
    assert pmt.load(folder / "build" / "card.img").image() == expected.image
    assert expected.image != task.model.image()
    assert sum(result["changed"] for result in expected.results) > 100
    trainer = _core.Trainer(model.core, options.to_core(), task.layers, options.batch)
    return [layer["estimator"] for layer in trainer.layers()]


@pytest.mark.parametrize(
    ("changes", "estimators", "optimize"),
    [
        ({"rule": "node"}, {"node_perturbation", "closed_form"}, "-O2"),
        (
            {"rule": "node", "nodes": "all", "rounding": "nearest", "mu_node": 2},
            {"node_perturbation", "closed_form"},
            "-O3",
        ),
        ({"rule": "weight", "generator": "xorshift32"}, {"weight_perturbation"}, "-Os"),
        (
            {"rule": "weight", "rounding": "nearest", "sharing": "batch"},
            {"weight_perturbation"},
            "-O2",
        ),
        ({"rule": "weight", "pairs": "antithetic"}, {"weight_perturbation"}, "-O2"),
        (
            {
                "rule": "by_dimension",
                "node_ratio": 2.0,
                "sharing": "batch",
                "separate_biases": True,
                "mu_bias": 50,
                "gradient_norm_scaling": "directions",
                "step": "gradient",
                "learning_rate": 30.0,
            },
            {"weight_perturbation", "node_perturbation", "closed_form"},
            "-O2",
        ),
        ({"scope": "model_wise", "rule": "weight"}, {"weight_perturbation"}, "-O1"),
        (
            {"rule": "node", "learning_rate": 3.0, "bias_rate": 4.0, "head_rate": 0.5},
            {"node_perturbation", "closed_form"},
            "-O2",
        ),
        ({"rule": "pooled", "batch": 1}, {"pooled_perturbation", "closed_form"}, "-O2"),
        (
            {"rule": "weight", "sharing": "batch", "learning_rate": 3.0, "preparation": "align"},
            {"weight_perturbation"},
            "-O3",
        ),
    ],
)
def test_every_kind_of_step_gives_the_same_bytes(tmp_path, changes, estimators, optimize):
    # Random data teach little: the measured scaling would leave hardly a step to compare.
    base = {"batch": 3, "queries": 6, "learning_rate": 0.3, "gradient_norm_scaling": "none"}
    options = pmt.preset("default", **{**base, **changes})
    model = residual_network()
    data = random_dataset(model, 12)
    used = check_same_bytes(tmp_path / "fw", model, data, options, f"OPTIMISE={optimize}")
    assert set(used) == estimators


@pytest.mark.parametrize(
    "changes",
    [
        {"loss": "squared_error"},
        {"loss": "binary_cross_entropy"},
        {"loss": "entropy", "diversity": 1.5},
    ],
    ids=lambda changes: changes["loss"],
)
def test_every_loss_gives_the_same_bytes(tmp_path, changes):
    options = pmt.preset("default", batch=3, queries=6, learning_rate=0.6, **changes)
    model = residual_network()
    data = random_dataset(model, 12)
    if changes["loss"] == "entropy":  # which reads no label, and no card of it holds any
        data = Dataset.unlabeled(data.images)
    used = check_same_bytes(tmp_path / "fw", model, data, options)
    assert set(used) == {"pooled_perturbation", "closed_form"}


def with_large_outputs(model: pmt.Model) -> pmt.Model:
    """The model with outputs so large that squared errors need a larger unit."""
    graph = model.to_graph()
    scales = graph.ops[-1].weight_scales
    assert scales is not None
    graph.ops[-1] = replace(graph.ops[-1], weight_scales=30 * scales)
    graph.tensors[-1] = replace(graph.tensors[-1], scale=30 * graph.tensors[-1].scale)
    return pmt.Model.from_graph(graph)


@pytest.mark.parametrize("loss", ["squared_error", "binary_cross_entropy"])
@pytest.mark.parametrize("batch", [1, 3])
def test_targets_give_the_same_bytes(tmp_path, loss, batch):
    options = pmt.preset(
        "default", batch=batch, queries=6, learning_rate=0.6, loss=loss, preparation="none"
    )
    model = with_large_outputs(residual_network())
    rng = np.random.default_rng(8)
    targets = rng.uniform(0, 1, (12, 4)) * (1 if loss == "binary_cross_entropy" else 90)
    data = Dataset.with_targets(random_dataset(model, 12).images, targets)
    used = check_same_bytes(tmp_path / "fw", model, data, options)
    assert set(used) == {"pooled_perturbation", "closed_form"}


@pytest.mark.parametrize(
    ("preset", "estimators"),
    [
        ("default", {"pooled_perturbation", "closed_form"}),
        ("paper", {"node_perturbation", "weight_perturbation", "closed_form"}),
        ("released", {"node_perturbation", "weight_perturbation", "closed_form"}),
    ],
)
def test_the_bundled_network_gives_the_same_bytes(tmp_path, preset, estimators):
    model = pmt.load("fashion_mnist_dscnn")
    data = pmt.corruptions.corrupt(
        pmt.datasets.bundled("train").take(40), "gaussian_noise", severity=5, seed=1
    )
    options = pmt.preset(preset, batch=2, queries=4)
    used = check_same_bytes(tmp_path / "fw", model, data, options, ram="256K", flash="1M")
    assert set(used) == estimators


@pytest.mark.parametrize(
    ("preset", "changes", "estimators"),
    [
        ("default", {"rule": "node"}, ["node_perturbation", "node_perturbation", "closed_form"]),
        ("paper", {"rule": "weight", "seed": 2}, ["weight_perturbation"] * 3),
    ],
)
def test_layers_of_resnet8_give_the_same_bytes(
    tmp_path, resnet8_path, cifar10_dir, preset, changes, estimators
):
    model = pmt.load(resnet8_path)
    data = pmt.datasets.load(cifar10_dir, split="test").take(40)
    options = pmt.preset(preset, layers="B4,head", batch=2, queries=4, **changes)
    used = check_same_bytes(tmp_path / "fw", model, data, options, ram="512K", flash="1M")
    assert used == estimators


@pytest.mark.parametrize("rule", ["pooled", "by_dimension"])
def test_biases_alone_give_the_same_bytes_with_the_weights_in_flash(tmp_path, rule):
    model = residual_network()
    data = random_dataset(model, 12)
    options = pmt.preset(
        "default",
        layers="B1,B2",
        rule=rule,
        batch=3,
        queries=6,
        train_weights=False,
        gradient_norm_scaling="none",
    )
    report = export(model, target=TARGET, out=tmp_path, dataset=data, options=options, steps=5)
    ok, log = emulate(tmp_path)
    assert ok, log
    check_marks(log, report.arena_bytes, report.stack_bytes)
    device = pmt.load(tmp_path / "build" / "card.img")
    for op in (0, 1, 2, 3):
        assert np.array_equal(device.core.weights(op), model.core.weights(op))
        assert not np.array_equal(device.core.bias(op), model.core.bias(op))


@pytest.mark.parametrize("changes", [{}, {"loss": "entropy", "diversity": 1.5}])
def test_a_run_goes_on_where_the_host_stopped(tmp_path, changes):
    options = pmt.preset("default", batch=4, epochs=2, queries=5, seed=9, **changes)
    data = random_dataset(residual_network(), 16)
    trainer = pmt.ZOTrainer(options)

    def stop(step: int, _record: dict[str, Any]) -> None:
        if step == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trainer.fit(residual_network(), data, out=tmp_path / "run", progress=stop)
    _, done = pmt.RunFolder(tmp_path / "run").load_checkpoint()
    assert 0 < done < 8
    export(tmp_path / "run", target=TARGET, out=tmp_path / "fw", dataset=data, steps=8 - done)
    ok, log = emulate(tmp_path / "fw")
    assert ok, log

    whole = residual_network()
    trainer.fit(whole, data, progress=False)
    device = pmt.load(tmp_path / "fw" / "build" / "card.img")
    for layer in whole.layers:
        assert np.array_equal(device.core.weights(layer.index), whole.core.weights(layer.index))
        assert np.array_equal(device.core.bias(layer.index), whole.core.bias(layer.index))
