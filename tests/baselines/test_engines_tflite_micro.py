"""TensorFlow Lite Micro behind the same trainer: equal losses for equal int8 logits."""

from __future__ import annotations

import importlib.util
import sys

import numpy as np
import pytest
from networks import residual_network, rounding_free_network
from required import need

import pmt
from pmt.baselines.engines import CoreEngine, EngineTrainer, TFLiteMicroEngine
from pmt.baselines.engines.tflite_micro import micro_arena

WEIGHT = pmt.TrainingOptions(
    gradient_norm_scaling="none",
    preparation="none",
    rule="weight",
    queries=6,
    mu_weight=1,
    int8_logits=True,
    seed=3,
)


@pytest.fixture(scope="module", autouse=True)
def package():
    found = importlib.util.find_spec("tflite_micro") is not None
    need(found, 'tflite_micro is missing: pip install "poor-mans-training[tflm]"')


@pytest.fixture(scope="module")
def dscnn_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("engine") / "dscnn.tflite"
    pmt.load("fashion_mnist_dscnn").save(path)
    return path


def saved(model: pmt.Model, folder) -> tuple[CoreEngine, TFLiteMicroEngine]:
    path = folder / "network.tflite"
    model.save(path)
    return CoreEngine(model, int8_logits=True, threads=1), TFLiteMicroEngine(path)


def small_images(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    images = rng.integers(-4, 5, (count, 6, 6, 3)).astype(np.int8)
    return images, rng.integers(0, 4, count)


def test_where_nothing_is_rounded_differently_all_losses_are_equal(tmp_path):
    core, micro = saved(rounding_free_network(), tmp_path)
    images, labels = small_images(300)
    np.testing.assert_array_equal(micro.logits(images), core.model.core.logits(images, 1, True))
    losses, correct = core.losses(images, labels)
    found, also_correct = micro.losses(images, labels)
    np.testing.assert_array_equal(found, losses)
    assert (found.dtype, also_correct) == (np.int32, correct)
    assert len(np.unique(losses)) > 100


@pytest.mark.parametrize(
    "changes",
    [
        {"layers": "all"},
        {"layers": "head", "sharing": "batch", "pairs": "antithetic"},
        {"layers": "conv", "baseline": "clean", "step": "gradient", "learning_rate": 0.3},
    ],
)
def test_both_engines_and_the_cores_trainer_leave_the_same_bytes(tmp_path, changes):
    options = WEIGHT.replace(**changes)
    images, labels = small_images(8)
    core, micro = saved(rounding_free_network(), tmp_path)
    trained = rounding_free_network()
    steppers = [
        pmt.ZOTrainer(options, threads=1).stepper(trained, 8),
        EngineTrainer(core, options),
        EngineTrainer(micro, options),
    ]
    before = trained.image()
    for step in range(6):
        results = [s.step(images, labels, step, options.learning_rate) for s in steppers]
        assert results[0] == results[1] == results[2]
    assert trained.image() != before
    assert core.model.image() == trained.image()
    for layer in trained.layers:
        weights, bias = micro.parameters(layer.index)
        np.testing.assert_array_equal(weights, trained.core.weights(layer.index))
        np.testing.assert_array_equal(bias, trained.core.bias(layer.index))


def test_equal_logits_of_a_real_network_are_equal_losses(dscnn_file):
    """Most values are equal; whole rows of ten seldom (docs/guides/engines.md)."""
    micro = TFLiteMicroEngine(dscnn_file)
    data = pmt.datasets.bundled("test").take(80)
    images = micro.model.prepare(data.images)
    own = micro.model.core.logits(images, 1, True)
    found = micro.logits(images)
    scale = np.float32(0.13464765)
    assert np.abs(found - own).max() < 2.01 * scale
    assert (found == own).mean() > 0.6
    losses, _ = micro.losses(images, data.labels)
    expected, _ = CoreEngine(micro.model, int8_logits=True).losses(images, data.labels)
    equal = (found == own).all(axis=1)
    assert equal.sum() >= 1
    np.testing.assert_array_equal(losses[equal], expected[equal])


def test_written_parameters_are_those_of_a_file_with_them(dscnn_file, tmp_path):
    """Every layer's weights and biases, read where they stand and not copied before."""
    micro = TFLiteMicroEngine(dscnn_file)
    images = micro.model.prepare(pmt.datasets.bundled("test").take(2).images)
    rng = np.random.default_rng(5)
    last = micro.logits(images)
    for layer in micro.model.layers:
        weights, bias = micro.parameters(layer.index)
        weights = np.clip(weights + rng.integers(-60, 61, weights.shape), -127, 127)
        micro.set_parameters(layer.index, weights.astype(np.int8), bias + np.int32(300))
        now = micro.logits(images)
        assert not np.array_equal(now, last), layer.name
        last = now
    micro.to_model().save(tmp_path / "changed.tflite")
    np.testing.assert_array_equal(
        TFLiteMicroEngine(tmp_path / "changed.tflite").logits(images), last
    )
    micro.to_model().save(tmp_path / "into.tflite", into=dscnn_file)
    np.testing.assert_array_equal(TFLiteMicroEngine(tmp_path / "into.tflite").logits(images), last)


def test_training_by_its_losses_lowers_them(dscnn_file):
    micro = TFLiteMicroEngine(dscnn_file)
    data = pmt.datasets.bundled("train").take(12)
    noisy = pmt.corruptions.corrupt(data, "gaussian_noise", 5)
    images = micro.model.prepare(noisy.images)
    options = WEIGHT.replace(
        layers="head", sharing="batch", baseline="clean", queries=8, mu_weight=8
    )
    trainer = EngineTrainer(micro, options)
    losses = [trainer.step(images, noisy.labels, step, 4.0)["loss"] for step in range(4)]
    assert losses[-1] < losses[0]
    assert trainer.forwards == 4 * 8 * 12


def test_logits_come_from_before_a_softmax(resnet8_path):
    micro = TFLiteMicroEngine(resnet8_path)
    images = np.zeros((1, 32, 32, 3), np.int8)
    own = micro.model.core.logits(images, 1, True)
    assert own.min() < -0.5  # no probabilities
    assert np.abs(micro.logits(images) - own).max() < 6.01 * 0.17185351


def test_files_that_cannot_serve_are_refused(tmp_path, dscnn_file, monkeypatch):
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        TFLiteMicroEngine(tmp_path / "none.tflite")
    with pytest.raises(ValueError, match="cannot run it with arena_bytes=1000"):
        TFLiteMicroEngine(dscnn_file, arena_bytes=1000)
    monkeypatch.setitem(sys.modules, "tflite_micro", None)
    with pytest.raises(ImportError, match=r"pip install \"poor-mans-training\[tflm\]\""):
        TFLiteMicroEngine(dscnn_file)


def test_arrays_that_do_not_fit_are_refused(tmp_path):
    _, micro = saved(rounding_free_network(), tmp_path)
    weights, bias = micro.parameters(2)
    with pytest.raises(ValueError, match=r"layer=1 must be a layer's op index, one of 0, 2"):
        micro.parameters(1)
    with pytest.raises(ValueError, match=r"bias of layer 2 must be int32 \(4,\); got int64 \(4,\)"):
        micro.set_parameters(2, weights, bias.astype(np.int64))
    with pytest.raises(
        ValueError, match=r"images must be int8 \(N, 6, 6, 3\); got int8 \(6, 6, 3\)"
    ):
        micro.logits(np.zeros((6, 6, 3), np.int8))


def test_parameters_that_layers_share_are_refused(tmp_path):
    import tflite

    path = tmp_path / "shared.tflite"
    residual_network().save(path)
    content = bytearray(path.read_bytes())
    subgraph = tflite.Model.GetRootAs(content, 0).Subgraphs(0)
    tensors = {
        subgraph.Tensors(i).Name(): subgraph.Tensors(i) for i in range(subgraph.TensorsLength())
    }
    table = tensors[b"down/bias"]._tab
    field = table.Pos + table.Offset(8)  # the index of its buffer
    content[field : field + 4] = tensors[b"project/bias"].Buffer().to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(ValueError, match="layers 'project' and 'down' share weights or biases"):
        TFLiteMicroEngine(path)


def test_padding_operators_and_additions_run(tmp_path):
    core, micro = saved(residual_network(), tmp_path)
    images = np.random.default_rng(0).integers(-128, 128, (20, 8, 8, 3)).astype(np.int8)
    own = core.model.core.logits(images, 1, True)
    assert np.abs(micro.logits(images) - own).max() < 2.01 * 0.1


def test_the_arena_is_the_smallest_that_runs(dscnn_file):
    content = dscnn_file.read_bytes()
    arena = micro_arena(content, 40_000)
    # 7 x 7 values of an addition's 64 channels, and of a layer's 128 in and out.
    assert arena.activations == 49 * (64 + 128 + 128)
    assert arena.total == 15_680 + 9_248
    TFLiteMicroEngine(dscnn_file, arena_bytes=arena.total)
    with pytest.raises(ValueError, match="cannot run it with arena_bytes=24912"):
        TFLiteMicroEngine(dscnn_file, arena_bytes=arena.total - 16)


def test_what_the_interpreter_cannot_run_has_no_arena(dscnn_file, capfd):
    import tflite

    content = bytearray(dscnn_file.read_bytes())
    convolution = tflite.Model.GetRootAs(bytes(content), 0).OperatorCodes(1)
    assert convolution.BuiltinCode() == tflite.BuiltinOperator.CONV_2D
    for field in (4, 10):  # of the operator's number: the old one and the new
        place = convolution._tab.Pos + convolution._tab.Offset(field)
        content[place] = tflite.BuiltinOperator.NON_MAX_SUPPRESSION_V4
    with pytest.raises(ValueError, match=r"cannot run the network: .*NON_MAX_SUPPRESSION_V4"):
        micro_arena(bytes(content), 40_000)
    assert capfd.readouterr().err == ""  # where the interpreter complains
