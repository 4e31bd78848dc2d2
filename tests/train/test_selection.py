"""Selection by trial runs: what it chooses, how sure it says it is, resuming, command line."""

import json
import re

import numpy as np
import pytest
from cli_files import same_weights
from networks import random_dataset, residual_network

import pmt
from pmt.cli import main
from pmt.protocol.comparison import paired_margin
from pmt.train.choose import default_candidates, select
from pmt.train.schedule import Schedule

OPTIONS = pmt.preset("default", batch=10, queries=4, seed=3, rule="by_dimension")


@pytest.fixture
def case():
    model = residual_network()
    return model, random_dataset(model, 40), random_dataset(model, 30, 1)


def test_each_candidate_is_trained_from_the_same_start_and_scored(case):
    model, train, held_out = case
    start = model.copy()
    found = select(model, train, held_out, options=OPTIONS, progress=False)
    assert same_weights(model, start)
    assert [candidate.name for candidate in found.candidates] == ["B1", "B2", "B3"]
    assert found.loss == pytest.approx(model.evaluate(held_out).loss, abs=1e-12)
    for candidate in found.candidates:
        trained = model.copy()
        options = OPTIONS.replace(layers=candidate.name, epochs=1, keep_best=False)
        pmt.ZOTrainer(options).fit(trained, train, progress=False)
        measured = trained.evaluate(held_out)
        assert candidate.loss == pytest.approx(measured.loss, abs=1e-12)
        assert candidate.accuracy == pytest.approx(measured.accuracy, abs=1e-12)
        assert candidate.gain.mean == pytest.approx(found.loss - measured.loss, abs=1e-12)
    assert found.best.loss == min(candidate.loss for candidate in found.candidates)
    assert found.best.margin.mean == found.best.margin.standard_error == 0.0


def test_costs_are_counted(case):
    model, train, held_out = case
    found = select(
        model,
        train,
        held_out,
        options=OPTIONS,
        candidates=["B1", "B3+head"],
        seeds=2,
        progress=False,
    )
    first, second = found.candidates
    assert (first.weights, first.biases) == (8 * 27 + 128, 8 + 16)
    assert (second.weights, second.biases) == (8 * 72 + 32, 8 + 4)
    assert second.layers == "B3,head"
    # 4 steps of 10 images, 4 queries, two seeds; the head needs no query.
    assert (first.forwards, second.forwards) == (640, 320)
    assert found.forwards == 960
    for candidate in found.candidates:
        options = OPTIONS.replace(layers=candidate.layers, epochs=1)
        assert candidate.total_macs == 8 * pmt.ZOTrainer(options).cost(model).macs
        assert candidate.macs * 10 * 8 == candidate.total_macs
    assert second.memory_bytes > second.weights + 4 * second.biases
    assert found.macs == first.total_macs + second.total_macs


def test_the_criterion_decides(case):
    model, train, held_out = case
    kwargs = {"options": OPTIONS.replace(learning_rate=3.0), "progress": False}
    by_accuracy = select(model, train, held_out, criterion="accuracy", **kwargs)
    assert by_accuracy.best.accuracy == max(c.accuracy for c in by_accuracy.candidates)
    rival = by_accuracy.candidates[0]
    assert rival.margin.mean == pytest.approx(by_accuracy.best.accuracy - rival.accuracy)
    with pytest.raises(
        ValueError, match="criterion='luck' is unknown; choose one of loss, accuracy"
    ):
        select(model, train, held_out, criterion="luck", **kwargs)


def test_the_choice_says_when_it_is_not_significant():
    model = pmt.load("fashion_mnist_dscnn")
    data = pmt.corruptions.corrupt(pmt.datasets.bundled("train").take(200), "gaussian_noise", 5)
    train, held_out = data.take(100), data.subset(np.arange(100, 200))
    options = pmt.preset("default", batch=20, queries=4)
    found = select(
        model, train, held_out, options=options, candidates=["conv1", "B1", "head"], progress=False
    )
    assert found.best.gain.significant
    rivals = {candidate.name for candidate in found.rivals}
    assert found.significant == (not rivals)
    for candidate in found.candidates:
        z = candidate.margin.mean / max(candidate.margin.standard_error, 1e-12)
        expected = "worse" if z > 1.959964 else "cannot be told apart"
        if candidate is found.best:
            expected = "chosen, not significant" if rivals else "chosen"
        assert found.verdict(candidate) == expected


def test_paired_margin_is_that_of_the_differences():
    scores = np.array([[1.0, 5.0, 9.0, 13.0]])
    others = scores + np.array([[1.0, 2.0, 1.0, 2.0]])
    margin = paired_margin(scores, others)
    assert margin.mean == 1.5
    assert margin.standard_error == pytest.approx(np.sqrt((1 / 3) / 4))
    assert margin.significant
    assert margin.interval == pytest.approx((1.5 - 0.565795, 1.5 + 0.565795), abs=1e-5)
    two = paired_margin(np.vstack([scores, scores]), np.vstack([scores + 1.0, scores + 3.0]))
    assert two.mean == 2.0
    assert two.standard_error == pytest.approx(1.0)  # the images agree, the seeds do not
    with pytest.raises(ValueError, match="2 images or more"):
        paired_margin(scores[:, :1], others[:, :1])


def test_the_margin_covers_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(400):
        hard = rng.normal(0, 3, (1, 50))
        low, high = paired_margin(hard, hard + 0.1 + rng.normal(0, 0.5, (1, 50))).interval
        hits += low < 0.1 < high
    assert 0.92 <= hits / 400 <= 0.97


def test_what_cannot_be_selected_is_refused(case):
    model, train, held_out = case
    two_names = "two or more different names"
    for change, error, message in (
        ({"candidates": ["B1"]}, ValueError, two_names),
        ({"candidates": ["B1", "B1"]}, ValueError, two_names),
        ({"candidates": ["B1", "B9"]}, ValueError, "'B9' is neither a block"),
        ({"seeds": 0}, ValueError, r"seeds=0 must be 1\.\.1000"),
        ({"options": 3}, TypeError, r"options is 3: must be pmt.TrainingOptions"),
        ({"model": 3}, TypeError, r"must be a pmt.Model"),
        ({"held_out": held_out.take(1)}, ValueError, "held_out has 1 image"),
        ({"held_out": train[:5]}, ValueError, "5 images of 5 in held_out are also in train"),
    ):
        given = {"model": model, "train": train, "held_out": held_out, **change}
        with pytest.raises(error, match=message):
            select(**given)
    graph = model.to_graph()
    for blocks, message in (
        ({"all": [0]}, r"has no blocks B1, B2, ... \(it has all\)"),
        ({"B1": [0]}, r"has one block, B1, and a choice needs two or more"),
    ):
        graph.blocks = blocks
        with pytest.raises(ValueError, match=message):
            default_candidates(pmt.Model.from_graph(graph))


def test_finished_and_interrupted_trials_are_used_again(case, tmp_path, monkeypatch):
    model, train, held_out = case
    kwargs = {"options": OPTIONS, "out": tmp_path / "runs", "progress": False}
    fit, started = pmt.ZOTrainer.fit, []

    def interrupted(self, *arguments, progress, **more):
        started.append(self.options.layers)

        def stop(step, record):
            if self.options.layers == "B2" and step == 2:
                raise KeyboardInterrupt
            progress(step, record)

        return fit(self, *arguments, progress=stop, **more)

    monkeypatch.setattr(pmt.ZOTrainer, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        select(model, train, held_out, **kwargs)
    assert started == ["B1", "B2"]
    monkeypatch.setattr(pmt.ZOTrainer, "fit", fit)
    assert (tmp_path / "runs" / "B1-seed3" / "DONE").is_file()
    assert not (tmp_path / "runs" / "B2-seed3" / "DONE").exists()
    resumed = select(model, train, held_out, **kwargs)
    assert resumed == select(model, train, held_out, options=OPTIONS, progress=False)
    with pytest.raises(ValueError, match="a run with other options or data"):
        select(model, train.take(30), held_out, **kwargs)


COMMAND = [
    *("select", "fashion_mnist_dscnn", "--data", "bundled", "--corruption", "gaussian_noise"),
    *("--images", "240", "--held-out", "40", "--batch", "20", "--queries", "2"),
    *("--blocks", "B1,B4+head", "--threads", "1"),
]


def test_the_command_prints_a_table_and_writes_json(tmp_path, capsys):
    assert main([*COMMAND, "--json", str(tmp_path / "s.json"), "--out", str(tmp_path / "r")]) == 0
    text = capsys.readouterr().out
    assert "data    bundled, gaussian_noise severity 5: 200 training, 40 held out\n" in text
    assert re.search(r"^B4\+head +10,048 +[\d.]+ KB +[\d.]+ +\d\.\d{4} ", text, re.MULTILINE)
    assert re.search(r"^2,000 perturbed forwards, [\d.]+ GMAC, and 120 forwards", text, re.M)
    figures = json.loads((tmp_path / "s.json").read_text())
    assert figures["best"] in ("B1", "B4+head")
    assert [row["layers"] for row in figures["candidates"]] == ["B1", "B4,head"]
    assert figures["forwards"] == 2000
    assert (tmp_path / "r" / "B4+head-seed1").is_dir()


def test_the_command_draws_the_result(tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    assert main([*COMMAND, "--plot", str(tmp_path / "s.png")]) == 0
    assert (tmp_path / "s.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--criterion", "luck"], "--criterion 'luck' is unknown; choose one of loss, accuracy"),
        (["--protocol", "fair"], "--protocol 'fair' is unknown; choose one of default, paper"),
        (["--held-out", "240"], "--held-out=240 must be 0 to 239"),
    ],
)
def test_bad_arguments_are_one_line(extra, message, capsys):
    assert main([*COMMAND, *extra]) == 2
    assert capsys.readouterr().err.startswith(f"pmt: error: {message}")


def test_the_papers_protocol_fixes_its_numbers(capsys):
    assert main([*COMMAND, "--protocol", "paper"]) == 2
    assert "--images is fixed by --protocol paper" in capsys.readouterr().err
    few = [part for part in COMMAND if part not in ("--images", "240", "--held-out", "40")]
    assert main([*few, "--protocol", "paper"]) == 2
    assert "the protocol 'paper' needs 200 of each" in capsys.readouterr().err


def in_the_core(model, train, held_out, names, options):
    """The same selection by the core's loop: sums of fixed-point losses, numbers of right ones."""
    schedule = Schedule(options, len(train))
    order = np.concatenate([schedule.indices(step) for step in range(schedule.steps)])
    rates = [schedule.learning_rate(step) for step in range(schedule.steps)]
    return pmt._core.select_layers(
        model.core,
        options.to_core(),
        [model.select_layers(name) for name in names],
        model.prepare(train.images)[order],
        train.labels[order],
        np.array(rates, np.float32),
        model.prepare(held_out.images),
        np.ascontiguousarray(held_out.labels),
        threads=2,
    )


@pytest.mark.parametrize("changes", [{}, {"rounding": "nearest", "rule": "weight", "seed": 9}])
def test_the_core_selects_as_the_host_does_bit_for_bit(case, changes):
    model, train, held_out = case
    options = OPTIONS.replace(epochs=1, learning_rate=2.0, **changes)
    names = ["B1", "B2", "B3", "head"]
    start = model.copy()
    scores = in_the_core(model, train, held_out, names, options)
    assert same_weights(model, start)
    found = select(model, train, held_out, options=options, candidates=names, progress=False)
    for (loss_sum, correct), candidate in zip(scores, found.candidates, strict=True):
        assert loss_sum / pmt._core.LOSS_ONE / 30 == pytest.approx(candidate.loss, abs=1e-15)
        assert correct / 30 == candidate.accuracy
    assert len({loss_sum for loss_sum, _ in scores}) == 4
    # The packed weights, too, are those of the start again.
    assert np.array_equal(model.logits(held_out.images), start.logits(held_out.images))


@pytest.mark.parametrize(
    ("layers", "steps", "message"),
    [
        ([0], 3, "images must hold the same number for each of the learning_rates; got 40 images"),
        ([4], 4, "no weights to train"),
        ([1, 0], 4, "layers must be ascending"),
    ],
)
def test_the_core_refuses_what_does_not_fit(case, layers, steps, message):
    model, train, held_out = case
    with pytest.raises(ValueError, match=message):
        pmt._core.select_layers(
            model.core,
            OPTIONS.to_core(),
            [layers],
            model.prepare(train.images),
            train.labels,
            np.ones(steps, np.float32),
            model.prepare(held_out.images),
            held_out.labels,
        )
