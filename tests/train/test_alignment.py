"""Channel statistics on clean images, and their restoration on other ones."""

import json
import re

import numpy as np
import pytest
from interruptions import cut_and_resumed
from networks import residual_network

import pmt
from pmt import _core, corruptions, datasets
from pmt.cli.program import main
from pmt.train.prepare.alignment import align, alignment_cost
from pmt.train.prepare.clean_statistics import (
    CleanStatistics,
    aligned_layers,
    measure_statistics,
    stored_statistics,
    window_layers,
    with_statistics,
    without_statistics,
)


@pytest.fixture
def model():
    return pmt.load("fashion_mnist_dscnn")


@pytest.fixture(scope="module")
def clean():
    return datasets.bundled("train").take(128)


@pytest.fixture(scope="module")
def reference(clean):
    return measure_statistics(pmt.load("fashion_mnist_dscnn"), clean.images)


def contrast(count, split="train", seed=0):
    return corruptions.corrupt(datasets.bundled(split).take(count), "contrast", 3, seed=seed)


def noisy(count, split="train", seed=0):
    return corruptions.corrupt(datasets.bundled(split).take(count), "impulse_noise", 5, seed=seed)


def aligned_twice(images, reference, **either):
    """Return two models, aligned with either value of an argument, and the work of both."""
    ((name, values),) = either.items()
    models = [pmt.load("fashion_mnist_dscnn") for _ in values]
    found = zip(models, values, strict=True)
    return models, [align(model, images, reference, **{name: value}) for model, value in found]


def test_alignment_undoes_a_loss_of_contrast_without_labels(model, reference):
    test = contrast(500, "test", seed=1)
    weights = [model.core.weights(layer.index) for layer in model.layers]
    before = model.evaluate(test).accuracy
    done = align(model, contrast(128).images, reference, windows=False)
    after = model.evaluate(test).accuracy
    assert (before < 0.5, after > 0.75, after > before + 0.3) == (True, True, True)
    assert (done.images, done.layers) == (128, len(model.layers) - 1)
    assert done.forwards == 128  # no windows, and so no reliability
    for layer, kept in zip(model.layers, weights, strict=True):
        assert np.array_equal(model.core.weights(layer.index), kept)


def test_aligned_channels_have_the_statistics_of_the_reference(model, reference):
    images = contrast(128).images
    align(model, images, reference)
    for name, now in measure_statistics(model, images).channels.items():
        live = reference.channels[name][1] > 0
        wanted = reference.channels[name][:, live]
        assert np.all(np.abs(now[0, live] - wanted[0]) <= 0.1 * wanted[1]), name
        assert np.all(np.abs(now[1, live] / wanted[1] - 1) <= 0.1), name


def test_an_alignment_that_is_interrupted_leaves_the_model_as_it_was(model, reference):
    before = model.image()

    def interrupted(done: int, total: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        align(model, contrast(64).images, reference, progress=interrupted)
    assert model.image() == before
    whole = pmt.load("fashion_mnist_dscnn")
    for one in (model, whole):
        align(one, contrast(64).images, reference)
    assert model.image() == whole.image()


def test_a_model_keeps_its_accuracy_on_clean_images(model, clean, reference):
    test = datasets.bundled("test").take(500)
    before = model.evaluate(test).accuracy
    align(model, clean.images, reference)
    assert model.evaluate(test).accuracy == pytest.approx(before, abs=0.02)


def test_statistics_live_in_the_model(model, reference, tmp_path):
    assert stored_statistics(model) is None
    with pytest.raises(ValueError, match="holds no statistics of clean images to align to"):
        align(model, contrast(4).images)
    with_statistics(model, reference).save(tmp_path / "m.pmt")
    loaded = pmt.load(tmp_path / "m.pmt")
    stored = stored_statistics(loaded)
    assert stored.images == 128
    assert sorted(stored.channels) == sorted(layer.name for layer in model.layers[:-1])
    assert all(np.array_equal(stored.channels[n], reference.channels[n]) for n in stored.channels)
    assert sorted(stored.windows) == sorted(reference.windows)
    for name, windows in stored.windows.items():
        assert np.array_equal(windows.means, reference.windows[name].means)
        assert np.array_equal(windows.covariances, reference.windows[name].covariances)
    assert without_statistics(loaded).image() == model.image()


def test_windows_change_weights_and_keep_what_channels_bring(reference):
    test = contrast(500, "test", seed=1)
    models, _ = aligned_twice(contrast(128).images, reference, windows=(False, True))
    without, with_windows = (model.evaluate(test).accuracy for model in models)
    assert with_windows > without - 0.02
    for layer in models[0].layers:
        before, after = (model.core.weights(layer.index) for model in models)
        assert np.array_equal(before, after) != (layer.name in reference.windows), layer.name


def test_reliability_changes_layers_that_mix_channels_where_images_hold_noise(reference):
    models, done = aligned_twice(noisy(128).images, reference, reliability=(False, True))
    mixing = [
        layer.name
        for layer in models[0].layers
        if _core.mixes_channels(models[0].core, layer.index)
    ]
    kinds = {op["name"]: op["kind"] for op in models[0].core.ops()}
    assert mixing
    assert {kinds[name] for name in mixing} <= {"conv2d", "fully_connected"}
    for name, weights in weights_of(models[0], mixing).items():
        assert not np.array_equal(weights, weights_of(models[1], mixing)[name]), name
    test = noisy(500, "test", seed=1)
    without, with_reliability = (model.evaluate(test).loss for model in models)
    assert with_reliability < without
    assert [work.forwards for work in done] == [128, 3 * 128]
    assert done[1].macs > done[0].macs


def weights_of(model, names):
    """Return the int8 weights of layers, by name."""
    return {
        layer.name: model.core.weights(layer.index) for layer in model.layers if layer.name in names
    }


@pytest.mark.parametrize("corruption", ["none", "gaussian_blur", "contrast"])
def test_reliability_leaves_everything_as_it_is_without_noise(reference, corruption):
    images = datasets.bundled("train").subset(np.arange(300, 556))
    if corruption != "none":
        images = corruptions.corrupt(images, corruption, 5)
    models, done = aligned_twice(images.images, reference, reliability=(False, True))
    assert [work.forwards for work in done] == [256, 256]
    assert models[0].image() == models[1].image()


def test_reliability_looks_at_images_of_all_classes(reference, monkeypatch):
    taken = []
    probes = _core.noise_probes
    monkeypatch.setattr(
        _core, "noise_probes", lambda core, images: taken.append(images) or probes(core, images)
    )
    images = noisy(300).images
    model = pmt.load("fashion_mnist_dscnn")
    align(model, images, reference)
    (chosen,) = taken
    order = [i * 300 // 256 for i in range(256)]
    assert np.array_equal(chosen, model.prepare(images)[order])


def test_reliability_needs_windows(reference):
    models = [pmt.load("fashion_mnist_dscnn") for _ in range(2)]
    for model, reliability in zip(models, (False, True), strict=True):
        work = align(model, noisy(32).images, reference, windows=False, reliability=reliability)
        assert work.forwards == 32
    assert models[0].image() == models[1].image()


def test_the_core_refuses_reliabilities_that_do_not_fit(model):
    pairs = np.zeros((4, 28, 28, 1), np.int8)
    statistics = _core.Statistics(model.core, pairs, 1)
    op = next(x.index for x in model.layers if _core.mixes_channels(model.core, x.index))
    found = statistics.measure_reliability(op)
    assert found.shape[0] == 2
    with pytest.raises(ValueError, match="op 0 does not mix channels that other layers made"):
        statistics.measure_reliability(0)
    for values, strength, message in (
        (found, 1.5, r"strength must be 0\.\.1, got 1\.5"),
        (found, float("nan"), "strength must be 0"),
        (found[:, 1:].copy(), 1.0, r"reliability must have shape \(2, \d+\); got"),
        (found * np.float32("nan"), 1.0, "reliability must be finite"),
        (np.full_like(found, -1), 1.0, r"correlations 0\.\.1; that of channel 0 is -1\.0"),
    ):
        with pytest.raises(ValueError, match=message):
            statistics.weigh_channels(op, values, strength)
    odd = _core.Statistics(model.core, pairs[:3], 1)
    with pytest.raises(ValueError, match="images must be pairs, one and the same disturbed; got 3"):
        odd.measure_reliability(op)


def test_fewer_images_are_probed_where_maps_are_large(model):
    large = residual_network(size=512)
    for network, images, expected in ((model, 300, 256), (model, 9, 9), (large, 300, 64)):
        assert _core.probed_images(network.core, images) == expected


def test_noise_probes_stand_behind_their_images(model):
    images = np.zeros((2, 28, 28, 1), np.int8)
    images[0, 4, 4] = 100
    pairs = _core.noise_probes(model.core, images)
    assert (pairs.dtype, pairs.shape) == (np.int8, (4, 28, 28, 1))
    assert np.array_equal(pairs[::2], images)
    assert np.array_equal(pairs[1], images[0])  # the next image is flat
    # The first one comes after the last: a bright pixel, less its square's mean of a 25th.
    assert pairs[3, 2:7, 2:7, 0].tolist() == [
        [96 if (y, x) == (2, 2) else -4 for x in range(5)] for y in range(5)
    ]
    assert np.count_nonzero(pairs[3]) == 25


def test_the_core_refuses_windows_that_do_not_fit(model, reference):
    (index, name) = next((i, n) for i, n in aligned_layers(model).items() if n in reference.windows)
    clean = reference.windows[name].covariances
    found = np.stack([clean, clean])
    assert _core.reliability_strength(model.core, index, clean, found) == 0.0
    for known, now, message in (
        (clean, clean, r"found values must have shape \(0, \d+, \d+\)"),
        (clean[:, 1:].copy(), found, r"clean values must have shape \(\d+, \d+\); got"),
        (clean, found * np.float32("nan"), "found values must be finite"),
    ):
        with pytest.raises(ValueError, match=message):
            _core.reliability_strength(model.core, index, known, now)


def test_windows_are_those_of_spatial_layers(model, reference):
    shapes = {
        model.core.ops()[index]["name"]: shape for index, shape in window_layers(model).items()
    }
    assert list(shapes) == list(reference.windows)
    for name, (groups, values) in shapes.items():
        assert reference.windows[name].covariances.shape == (groups, values)
        live = reference.windows[name].covariances.any(axis=1)
        assert np.all(np.abs(reference.windows[name].covariances[live]).max(axis=1) == 1.0)


def test_no_image_at_all_is_refused(model, reference):
    images = contrast(4).images[:0]
    message = "images has shape (0, 28, 28, 1): must hold at least one image; give some hundred"
    for measure in (
        lambda: align(model, images, reference),
        lambda: measure_statistics(model, images),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            measure()


def test_what_does_not_fit_is_refused(reference):
    model, channels = pmt.load("fashion_mnist_dscnn"), reference.channels
    first = model.layers[0].name
    name, windows = next(iter(reference.windows.items()))
    short = {name: windows._replace(covariances=windows.covariances[:, 1:])}
    fewer = {name: windows._replace(means=windows.means[1:])}
    nan = np.full_like(channels[first], np.nan)
    for known, message in (
        (({},), f"no statistics of layer '{first}'"),
        (({**channels, first: np.zeros((2, 3), np.float32)},), r"must have shape \(2, \d+\)"),
        (({**channels, first: nan},), "must be finite; channel 0 is not"),
        ((channels, short), r"reference values must have shape \(\d+, \d+\); got"),
        ((channels, fewer), r"centers must have shape \(1,\); got \(0,\)$"),
    ):
        with pytest.raises(ValueError, match=message):
            align(model, contrast(4).images, CleanStatistics(128, *known))


@pytest.mark.parametrize(
    "stored",
    [
        {},
        {"layers": {"a": "!"}},
        {"layers": {"a": "AAA="}},
        3,
        {"images": 1, "layers": {}, "windows": {"a": {}}},
    ],
)
def test_damaged_statistics_are_one_clear_error(stored):
    graph = pmt.load("fashion_mnist_dscnn").to_graph()
    graph.metadata = {**graph.metadata, "channel_statistics": stored}
    with pytest.raises(ValueError, match="the model's channel_statistics are damaged"):
        stored_statistics(pmt.Model.from_graph(graph))


def test_the_commands_store_statistics_and_align(tmp_path, capsys):
    data = ["--data", "bundled", "--limit", "64"]
    stored, aligned = tmp_path / "stored.pmt", tmp_path / "aligned.pmt"
    assert main(["statistics", "fashion_mnist_dscnn", *data, "--out", str(stored)]) == 0
    assert (
        "672 channels of 10 layers and the windows of 5 on 64 train images of bundled"
        in capsys.readouterr().out
    )
    options = [*data, "--corruption", "contrast", "--severity", "3", "--no-input", "--json", "-"]
    assert main(["align", str(stored), *options, "--out", str(aligned)]) == 0
    figures = json.loads(capsys.readouterr().out)
    model = pmt.load(aligned)
    assert figures["layers"] == len(model.layers) - 1
    assert figures["forwards"] == 64
    assert model.evaluate(contrast(200, "test", seed=1)).accuracy > 0.7
    options[options.index("contrast")] = "impulse_noise"
    for more, forwards in (([], 3 * 64), (["--no-reliability"], 64)):
        assert main(["align", str(stored), *options, *more, "--out", str(aligned), "--force"]) == 0
        assert json.loads(capsys.readouterr().out)["forwards"] == forwards


def test_the_command_says_why_one_image_changes_nothing(tmp_path, capsys):
    stored, aligned = tmp_path / "stored.pmt", tmp_path / "aligned.pmt"
    data = ["--data", "bundled", "--limit"]
    assert main(["statistics", "fashion_mnist_dscnn", *data, "16", "--out", str(stored)]) == 0
    capsys.readouterr()
    assert main(["align", str(stored), *data, "1", "--out", str(aligned)]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == [
        "0 layers aligned to 1 train image of bundled",
        "the model is unchanged: one image, or copies of it, cannot tell a shift from chance; give "
        "--limit 2 or more",
    ]
    assert pmt.load(aligned).image() == pmt.load(stored).image()


@pytest.mark.parametrize("kind", ["one", "copies", "black"])
def test_what_has_no_scatter_changes_nothing(model, kind):
    images = datasets.bundled("train").images
    reference = measure_statistics(model, images[:64])
    before = model.image()
    new = {"one": images[:1], "copies": images[[7] * 20], "black": np.zeros_like(images[:20])}
    assert align(model, new[kind], reference).forwards == 0
    assert model.image() == before


def test_copies_count_once():
    one, other = pmt.load("fashion_mnist_dscnn"), pmt.load("fashion_mnist_dscnn")
    images = contrast(30).images
    reference = measure_statistics(one, datasets.bundled("train").images[:64])
    align(one, images, reference)
    align(other, np.concatenate([images[:20], images[:7], images[20:], images[3:4]]), reference)
    assert one.image() == other.image()


@pytest.mark.parametrize(("kind", "most"), [("clean", 0.02), ("contrast", 0.0)])
def test_a_few_images_do_no_harm(model, kind, most):
    images = datasets.bundled("train").images
    reference = measure_statistics(model, images[:500])
    test = contrast(1000, "test", seed=1) if kind == "contrast" else datasets.bundled("test")
    new = contrast(600).images if kind == "contrast" else images
    before = model.evaluate(test).accuracy
    align(model, new[500:516], reference)
    assert model.evaluate(test).accuracy >= before - most


@pytest.mark.parametrize("command", ["statistics", "align"])
def test_the_commands_replace_their_own_model_alone(command, tmp_path, capsys):
    stored, other = tmp_path / "stored.pmt", tmp_path / "other.pmt"
    options = ["--data", "bundled", "--limit", "16"]
    bundled = ["statistics", "fashion_mnist_dscnn", *options]
    assert main([*bundled, "--out", str(stored)]) == 0
    before = stored.read_bytes()
    other.write_bytes(b"kept")
    capsys.readouterr()
    command = [command, str(stored), *options, "--split", "test"]
    assert main([*command, "--out", str(other)]) == 2
    assert capsys.readouterr().err == (
        f"pmt: error: --out {other} exists; choose another name, or add --force\n"
    )
    assert other.read_bytes() == b"kept"
    assert main([*command, "--out", str(other), "--force"]) == 0
    assert main([*command, "--out", str(stored)]) == 0
    assert stored.read_bytes() == other.read_bytes() != before


def test_alignment_before_training_is_part_of_the_run(reference, tmp_path):
    start = with_statistics(pmt.load("fashion_mnist_dscnn"), reference)
    data, valid = contrast(128), contrast(100, "test", seed=1)
    trainer = pmt.ZOTrainer(
        layers="B1",
        queries=2,
        batch=64,
        epochs=1,
        preparation="align+head",
        align_images=64,
        learning_rate=0.05,
    )
    whole = trainer.fit(start.copy(), data, valid=valid, out=tmp_path / "whole", progress=False)
    assert whole.before["valid_accuracy"] < 0.5
    assert whole.epochs[-1]["valid_accuracy"] > 0.7
    plain = pmt.ZOTrainer(trainer.options.replace(preparation="head"))
    without = plain.fit(start.copy(), data, progress=False)
    aligned = start.copy()
    align(aligned, data.images[:64])
    # Counted before the images are seen, as if there were noise in them.
    work = alignment_cost(aligned, 64)
    assert whole.epochs[-1]["macs"] == without.epochs[-1]["macs"] + work.macs
    assert whole.epochs[-1]["forwards"] == without.epochs[-1]["forwards"]
    resumed = cut_and_resumed(trainer, start, data, valid, tmp_path / "cut")
    assert resumed.model.image() == whole.model.image()
    assert resumed.epochs[-1]["macs"] == whole.epochs[-1]["macs"]
