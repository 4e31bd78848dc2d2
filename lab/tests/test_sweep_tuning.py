"""Learning rates that a sweep's trials choose: one rule for all, and no test image has a say."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace

import pytest
from lab_files import program
from sweep_files import FAIR_RATES, FAIR_RUNS, SLOW, left_by, write_fair_grid

import pmt
from pmt import methods
from pmt.train.run.loop import Run
from pmt_lab.cli import main
from pmt_lab.report import FinishedRun, ReportJob, make_report
from pmt_lab.report.run_record import run_record
from pmt_lab.sweep import GridError, SweepJob, open_sweep, plan, read_grid, run_all, run_sweep
from pmt_lab.sweep.tuning import Choice, Trial, edge_line

TUNING = "[tuning]\nfactors = [0.5, 1, 4.0]"
TRIALS = 3 * FAIR_RATES
ALL = TRIALS + FAIR_RUNS
AWAITING = 2 * FAIR_RATES  # each rate with 2 seeds


@pytest.fixture
def grid(tmp_path):
    return write_fair_grid(tmp_path, TUNING)


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A grid, the folder of its finished runs, and what the sweep told."""
    folder = tmp_path_factory.mktemp("swept")
    grid = write_fair_grid(folder, TUNING)
    told: list[str] = []
    result = run_sweep(SweepJob(grid, folder / "out", jobs=1), tell=told.append)
    assert result.summary.failed == {}
    return grid, folder / "out", told


def results_in(out):
    return [json.loads(path.read_text()) for path in out.glob("*/result.json")]


def test_every_rate_has_the_same_trials(grid):
    found = plan(read_grid(grid))
    assert len(found.trials) == TRIALS
    assert [
        (r.method, r.preparation, r.trial, r.options["learning_rate"]) for r in found.trials[:6]
    ] == [
        ("default", "none", 0.5, 0.05),
        ("default", "none", 1.0, 0.1),
        ("default", "none", 4.0, 0.4),
        ("default", "align+head", 0.5, 0.05),
        ("default", "align+head", 1.0, 0.1),
        ("default", "align+head", 4.0, 0.4),
    ]
    assert {r.options["seed"] for r in found.trials} == {101}
    assert {(r.corruption, r.severity) for r in found.trials} == {("gaussian_noise", 5)}
    assert len({r.hash for r in found.trials}) == TRIALS
    runs = {(r.method, r.preparation): r for r in found.runs}
    for trial in found.trials:
        run = runs[trial.method, trial.preparation]
        assert (trial.macs, trial.steps, trial.forwards) == (run.macs, run.steps, run.forwards)
    assert [r.method for r in found.runs if not r.awaits_rate] == [
        "no_adaptation", "preparation_only", "preparation_only"
    ]  # fmt: skip
    assert found.trials[0].title == (
        "trial of rate 0.05, default, gaussian_noise 5, B2,head, seed 101"
    )


def test_images_and_seed_of_the_trials(tmp_path):
    tuning = '[tuning]\nfactors = [3.0, 0.3]\ncorruption = "fog"\nseverity = 2\nseed = 1'
    found = plan(read_grid(write_fair_grid(tmp_path, tuning)))
    assert {(r.corruption, r.severity, r.options["seed"]) for r in found.trials} == {("fog", 2, 1)}
    assert {r.corruption for r in found.runs} == {"gaussian_noise"}
    paper = [r.options["learning_rate"] for r in found.trials if r.method == "paper"]
    assert paper == [0.003, 0.03, 0.003, 0.03]
    # A trial is not a run of the table, though all its options are those of one.
    same = '[tuning]\ncorruption = "gaussian_noise"\nseed = 1'
    (tmp_path / "same").mkdir()
    found = plan(read_grid(write_fair_grid(tmp_path / "same", same)))
    assert [r.trial for r in found.trials[:4]] == [0.1, 0.3, 1.0, 3.0]
    trial = next(r for r in found.trials if r.trial == 1.0)
    run = next(r for r in found.runs if r.options == trial.options)
    assert run.hash != trial.hash


def test_trials_on_clean_images(tmp_path):
    found = plan(read_grid(write_fair_grid(tmp_path, '[tuning]\ncorruption = "none"')))
    assert {(r.corruption, r.severity) for r in found.trials} == {("none", 0)}


def test_the_rates_of_the_grid_are_those_of_today_without_the_table(tmp_path):
    runs = plan(read_grid(write_fair_grid(tmp_path))).runs
    assert not any(run.awaits_rate or run.tuning or run.trial for run in runs)
    assert {r.options["learning_rate"] for r in runs if r.method == "default"} == {0.1}


def choice(*losses):
    trials = (Trial(f, f / 100, loss, "") for f, loss in zip((0.1, 0.3, 1.0), losses, strict=True))
    return Choice(("paper", "none", "B2"), tuple(trials))


@pytest.mark.parametrize(
    ("losses", "factor", "at_edge"),
    [
        ((2.0, 1.0, 3.0), 0.3, False),
        ((2.0, 2.0, 3.0), 0.1, True),
        ((3.0, 2.0, 2.0), 0.3, False),
        ((3.0, 2.0, 1.0), 1.0, True),
        ((math.inf, 2.0, math.inf), 0.3, False),
        ((math.inf, math.inf, math.inf), 0.1, True),
    ],
)
def test_the_least_loss_wins_and_of_equal_ones_the_smaller_rate(losses, factor, at_edge):
    found = choice(*losses)
    assert (found.best.factor, found.at_edge) == (factor, at_edge)


def test_a_choice_in_words_and_as_json():
    found = choice(2.0, 1.0, math.inf)
    assert found.title == "learning rate of paper, none, B2: 0.003 (factor 0.3)"
    assert edge_line(found.group) == (
        "the rate of paper, none, B2 is at the edge of the factors tried"
    )
    assert found.to_record() == {
        "factor": 0.3,
        "learning_rate": 0.003,
        "at_edge": False,
        "trials": [
            {"factor": 0.1, "learning_rate": 0.001, "held_out_loss": 2.0, "hash": ""},
            {"factor": 0.3, "learning_rate": 0.003, "held_out_loss": 1.0, "hash": ""},
            {"factor": 1.0, "learning_rate": 0.01, "held_out_loss": None, "hash": ""},
        ],
    }


def test_the_runs_of_the_table_take_the_rate_that_won(swept):
    _, out, told = swept
    results = results_in(out)
    trials = [result for result in results if "trial" in result]
    tuned = [result for result in results if "tuning" in result]
    assert (len(results), len(trials), len(tuned)) == (ALL, TRIALS, AWAITING)
    for run in tuned:
        group = [
            t for t in trials
            if (t["base"], t["axes"]["preparation"]) == (run["base"], run["axes"]["preparation"])
        ]  # fmt: skip
        assert len(group) == 3
        best = min(
            group, key=lambda t: (t["after"]["held_out"]["loss"], t["options"]["learning_rate"])
        )
        assert run["options"] == {
            **best["options"], "seed": run["axes"]["seed"]
        }  # fmt: skip
        assert run["tuning"]["learning_rate"] == run["options"]["learning_rate"]
        losses = {trial["hash"]: trial["held_out_loss"] for trial in run["tuning"]["trials"]}
        assert losses == {t["hash"]: t["after"]["held_out"]["loss"] for t in group}
    chosen = [line for line in told if line.startswith("learning rate of ")]
    assert len(chosen) == FAIR_RATES
    assert f"learning rate of default, none, B2,head: {rate_of(tuned, 'default', 'none')}" in [
        line.partition(" (")[0] for line in chosen
    ]


def records_of(out):
    """Records of a sweep's runs, as a study keeps them."""
    folders = sorted(path.parent for path in out.glob("*/result.json"))
    found = [FinishedRun(path, json.loads((path / "result.json").read_text())) for path in folders]
    return [run_record(run) for run in found if "trial" not in run.result]


def test_runs_that_were_done_elsewhere_are_left_out_with_their_trials(swept, tmp_path):
    grid, out, _ = swept
    kept = records_of(out)
    fresh = open_sweep(SweepJob(grid, tmp_path / "fresh"))
    assert (len(kept), len(fresh.left)) == (FAIR_RUNS, ALL)
    assert fresh.without(kept).all_runs == ()
    assert fresh.without(kept).elsewhere == tuple(sorted(kept, key=in_order(fresh)))
    assert fresh.without(kept).run().done == 0
    # The rate that trials chose elsewhere is that of the run that is missing.
    gone = next(one for one in kept if one["axes"] == axes_of("default", seed=2))
    (left,) = fresh.without([one for one in kept if one is not gone]).left
    assert (left.axes, left.awaits_rate) == (gone["axes"], False)
    assert left.tuning["learning_rate"] == left.options["learning_rate"]
    assert left.tuning == gone["tuning"]
    # Trials with other factors or options choose no rate for this grid.
    for other in (
        changed(kept, "tuning", trials=gone["tuning"]["trials"][1:]),
        changed(kept, "options", queries=5),
    ):
        assert len(fresh.without(other).trials) == TRIALS
    # Without any run of a method its rate has trials here.
    method = [one for one in kept if one["axes"]["method"] == "paper"]
    other = fresh.without([one for one in kept if one not in method])
    assert [run.method for run in other.left] == ["paper"] * (len(method) + 2 * 3)
    assert all(run.awaits_rate for run in other.runs)


def changed(records, part, **values):
    """Records with other values of a part, where they have it."""
    return [{**one, part: {**one[part], **values}} if part in one else one for one in records]


def in_order(sweep):
    """Return the place of a record's run in a sweep."""
    places = [run.axes for run in sweep.runs]
    return lambda record: places.index(record["axes"])


def axes_of(method, seed):
    return {
        "method": method,
        "corruption": "gaussian_noise",
        "severity": 5,
        "layers": "B2,head",
        "preparation": "none",
        "seed": seed,
    }


def test_runs_of_other_options_and_those_that_are_finished_here_stay(swept, tmp_path):
    grid, out, _ = swept
    kept = records_of(out)
    fresh = open_sweep(SweepJob(grid, tmp_path / "fresh"))
    # Also where the record has the method's own value of an option that the grid changes.
    own = [{**one, "options": {**one["options"]}} for one in kept]
    for one in own:
        one["options"].pop("batch", None)
    for other in (
        changed(kept, "options", batch=9),
        own,
        [{**one, "base": "mezo"} for one in kept],
    ):
        left = {str(run.axes) for run in fresh.without(other).runs}
        assert {str(run.axes) for run in fresh.runs if run.awaits_rate} <= left
    here = open_sweep(SweepJob(grid, out))
    assert here.without(kept).runs == here.runs
    assert here.without(kept).left == []
    # Shards are parts of the whole grid, whatever is kept where.
    half = open_sweep(SweepJob(grid, tmp_path / "fresh", shard=(2, 2))).without(kept[:1])
    assert {str(run.axes) for run in half.runs} <= {str(run.axes) for run in fresh.runs[1::2]}


def rate_of(results, method, preparation):
    (rate,) = {
        f"{result['options']['learning_rate']:g}"
        for result in results
        if (result["base"], result["axes"]["preparation"]) == (method, preparation)
    }
    return rate


def test_trials_leave_the_test_images_alone(swept):
    _, out, told = swept
    for result in results_in(out):
        parts = ["held_out"] if result.get("trial") else ["clean", "held_out", "test"]
        assert sorted(result["before"]) == sorted(result["after"]) == parts
    trials = [line for line in told if "trial of rate" in line]
    assert len(trials) == TRIALS
    assert all(": held-out loss " in line and "accuracy" not in line for line in trials)


def test_before_the_trials_the_rates_are_to_be_tuned(grid, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["sweep", str(grid), "--out", str(out), "--dry-run", "--json", "-"]) == 0
    printed = capsys.readouterr()
    assert printed.err.startswith(
        f"{ALL} runs, {TRIALS} of them trials, 0 finished, {ALL} left\n"
        f"learning rates of {AWAITING} runs: to be tuned by the trials\n"
    )
    figures = json.loads(printed.out)
    assert figures["left"] == len(figures["runs"]) == ALL
    assert figures["rates"] == []
    found = plan(read_grid(grid))
    trial = figures["runs"][0]
    assert trial == {
        "hash": found.trials[0].hash,
        "method": "default",
        "corruption": "gaussian_noise",
        "severity": 5,
        "layers": "B2,head",
        "preparation": "none",
        "seed": 101,
        "macs": trial["macs"],
        "forwards": trial["forwards"],
        "learning_rate": 0.05,
        "trial": True,
        "finished": False,
    }
    awaiting = [run for run in figures["runs"] if run["hash"] is None]
    assert len(awaiting) == AWAITING
    assert {run["learning_rate"] for run in awaiting} == {"to be tuned"}
    # A trial costs what a run does, but for the test images.
    assert figures["macs"] == sum(
        run.macs + found.model.macs * ((0 if run.trial else 2 * 20) + (run.evaluations + 1) * 8)
        for run in (*found.trials, *found.runs)
    )
    assert not out.exists()


def test_runs_that_await_their_rates_are_refused(grid, tmp_path):
    with pytest.raises(ValueError, match="runs await learning rates that trials choose; call run_"):
        run_all(plan(read_grid(grid)).runs, tmp_path / "out", jobs=1)
    assert not (tmp_path / "out").exists()


def test_a_finished_sweep_does_nothing_more_and_names_rates_at_the_edge(swept, capsys):
    grid, out, _ = swept
    files = {p: p.stat().st_mtime_ns for p in out.rglob("*")}
    assert main(["sweep", str(grid), "--out", str(out), "--jobs", "1", "--json", "-"]) == 0
    printed = capsys.readouterr()
    figures = json.loads(printed.out)
    edges = [rate for rate in figures["rates"] if rate["at_edge"]]
    assert edges
    assert printed.err.splitlines() == [
        f"{ALL} runs, {TRIALS} of them trials, {ALL} finished, 0 left",
        f"{ALL} of {ALL} runs are finished; `pmt-lab report {out}`",
        *(
            f"the rate of {rate['method']}, {rate['preparation']}, B2,head is at the edge of the "
            "factors tried"
            for rate in edges
        ),
    ]
    assert [(rate["method"], rate["preparation"]) for rate in figures["rates"]] == [
        ("default", "none"), ("default", "align+head"), ("paper", "none"), ("paper", "align+head")
    ]  # fmt: skip
    assert len(figures["already"]) == len(figures["runs"]) == ALL
    assert {p: p.stat().st_mtime_ns for p in out.rglob("*")} == files


def test_stopped_in_the_trials_it_ends_with_the_same_bytes(swept, grid, tmp_path, monkeypatch):
    _, whole, _ = swept
    ended, end_epoch = [], Run._end_epoch

    def stop(self):
        ended.append(self)
        if len(ended) == 20:
            raise KeyboardInterrupt
        end_epoch(self)

    job = SweepJob(grid, tmp_path / "out", jobs=1)
    monkeypatch.setattr(Run, "_end_epoch", stop)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(job)
    monkeypatch.undo()
    assert 0 < len(open_sweep(job).results) < TRIALS
    assert run_sweep(job).summary.failed == {}
    assert left_by(tmp_path / "out") == left_by(whole)


def test_shards_together_are_the_whole(swept, grid, tmp_path):
    """Each does all trials, or finds them done, whatever its part of the tables."""
    _, whole, _ = swept
    out = tmp_path / "out"
    done = [run_sweep(SweepJob(grid, out, jobs=1, shard=(part, 2))) for part in (1, 2)]
    assert [len(result.summary.finished) for result in done] == [TRIALS + 6, FAIR_RUNS - 6]
    assert [len(result.summary.already) for result in done] == [0, TRIALS]
    assert left_by(out) == left_by(whole)


def test_two_processes_share_the_trials(swept, grid, tmp_path):
    _, whole, _ = swept
    out = tmp_path / "out"
    both = [program("sweep", grid, "--out", out, "--jobs", "1", code=SLOW) for _ in range(2)]
    printed = [process.communicate(timeout=600) for process in both]
    assert [process.returncode for process in both] == [0, 0], printed
    lines = [line for text, _ in printed for line in text.splitlines()]
    assert sum(": held-out loss " in line for line in lines) == TRIALS
    assert sum("seed" not in line and "accuracy" in line for line in lines) == 1
    assert left_by(out) == left_by(whole)


def test_a_failed_trial_keeps_its_runs_waiting(swept, grid, tmp_path, capsys, monkeypatch):
    from pmt_lab.sweep import execution

    def out_of_memory(base, **options):
        if (base, options["learning_rate"]) == ("paper", 0.04):
            raise MemoryError("not enough")
        return methods.trainer(base, **options)

    _, whole, _ = swept
    command = ["sweep", str(grid), "--out", str(tmp_path / "out"), "--jobs", "1"]
    monkeypatch.setattr(execution, "methods", SimpleNamespace(trainer=out_of_memory))
    assert main(command) == 1
    printed = capsys.readouterr()
    assert "trial of rate 0.04, paper, gaussian_noise 5, B2,head, seed 101: failed: Memo" in (
        printed.out
    )
    assert f"{ALL - 2 - 4} of {ALL} runs are finished" in printed.out
    assert printed.err == (
        "pmt: error: 2 runs failed, see above; 4 runs await the learning rates of failed trials\n"
    )
    monkeypatch.undo()
    assert main(command) == 0
    assert left_by(tmp_path / "out") == left_by(whole)


def test_further_factors_cost_their_own_trials_alone(swept, tmp_path):
    grid, out, _ = swept
    wider = tmp_path / "wider.toml"
    wider.write_text(grid.read_text().replace("[0.5, 1, 4.0]", "[0.25, 0.5, 1, 4.0]"))
    sweep = open_sweep(SweepJob(wider, out))
    assert len(sweep.plan.trials) == 4 * FAIR_RATES
    assert sum(run.hash in sweep.results for run in sweep.plan.trials) == TRIALS
    assert len(sweep.awaiting) == AWAITING


def test_the_report_lists_the_rates(swept, capsys):
    _, out, _ = swept
    command = ["report", str(out), "--columns", "preparation"]
    assert main(command) == 0
    printed = capsys.readouterr().out
    table = printed[printed.index("**learning rates, chosen by trials: held-out loss in nats**") :]
    lines = table.splitlines()
    assert lines[2:4] == [
        "| method | preparation | layers | factor | rate | loss at 0.5 | loss at 1 | loss at 4 |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    expected = make_report(ReportJob([out], columns=("preparation",)))
    rates = expected.to_json()["rates"]
    for line, rate in zip(lines[4:8], rates, strict=True):
        losses = [
            f"**{t['held_out_loss']:.4f}**" if t["factor"] == rate["factor"]
            else f"{t['held_out_loss']:.4f}"
            for t in rate["trials"]
        ]  # fmt: skip
        cells = [rate["method"], rate["preparation"], "B2,head", f"{rate['factor']:g}"]
        assert line == f"| {' | '.join([*cells, format(rate['learning_rate'], 'g'), *losses])} |"
    assert lines[9] == (
        "- Each method's own rate times every factor, at the budget of the table; the least loss "
        "on the held-out images wins, of equal ones the smaller rate. Bold: the one that won."
    )
    assert lines[10:] == [
        f"- The rate of {rate['method']}, {rate['preparation']}, B2,head is at the edge of the "
        "factors tried."
        for rate in rates
        if rate["at_edge"]
    ]
    assert "missing" not in printed
    assert "| 101 |" not in printed
    assert len(lines[10:]) > 0
    assert main([*command, "--where", "method=paper", "--json", "-"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["rates"] == [rate for rate in rates if rate["method"] == "paper"]
    assert main([*command, "--format", "csv"]) == 0
    assert "learning rates" not in capsys.readouterr().out


def test_a_folder_of_trials_alone_has_no_table(grid, tmp_path, capsys):
    run_all(plan(read_grid(grid)).trials[:1], tmp_path / "out", jobs=1)
    assert main(["report", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == (
        f"pmt: error: {tmp_path / 'out'}: holds only trials of learning rates; continue with the "
        "same `pmt-lab sweep`\n"
    )


@pytest.mark.parametrize(
    "damage",
    ["3", "{}", '{"trials": 1}', '{"trials": [1], "factor": 1.0, "learning_rate": 1.0}'],
)
def test_a_damaged_choice_is_named(swept, tmp_path, capsys, damage):
    _, out, _ = swept
    result = next(result for result in results_in(out) if "tuning" in result)
    path = tmp_path / "out" / result["hash"] / "result.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({**result, "tuning": json.loads(damage)}))
    assert main(["report", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == (
        f"pmt: error: {path}: is not a result of a run; remove the file, and the sweep makes it "
        "again\n"
    )


def test_a_loss_that_was_not_finite_and_a_factor_not_tried(swept, tmp_path):
    """Runs of two sweeps: one tried a factor that the other did not."""
    _, out, _ = swept
    tuned = [result for result in results_in(out) if "tuning" in result]
    for result in tuned:
        if (result["base"], result["axes"]["preparation"]) == ("paper", "none"):
            result["tuning"] |= {
                "factor": 1.0,
                "learning_rate": 0.01,
                "trials": [
                    {"factor": 0.25, "held_out_loss": 2.0},
                    {"factor": 1.0, "held_out_loss": 1.5},
                    {"factor": 4.0, "held_out_loss": None},
                ],
            }
        path = tmp_path / result["hash"] / "result.json"
        path.parent.mkdir()
        path.write_text(json.dumps(result))
    text = make_report(ReportJob([tmp_path], columns=("preparation",))).text()
    assert "| factor | rate | loss at 0.25 | loss at 0.5 | loss at 1 | loss at 4 |" in text
    row = "| paper | none | B2,head | 1 | 0.01 | 2.0000 | - | **1.5000** | not finite |"
    assert row in text.splitlines()


NOTHING = 'methods = ["no_adaptation", "preparation_only"]'
FACTORS = "must be a list of two or more distinct numbers > 0, for example [0.1, 0.3, 1.0, 3.0]"


@pytest.mark.parametrize(
    ("tuning", "error"),
    [
        ("factors = [1.0]", f"[tuning] factors = [1.0] {FACTORS}"),
        ("factors = []", f"[tuning] factors = [] {FACTORS}"),
        ("factors = [0, 1]", f"[tuning] factors = [0, 1] {FACTORS}"),
        ("factors = [-0.1, 1]", f"[tuning] factors = [-0.1, 1] {FACTORS}"),
        ("factors = [1, 1.0, 2]", f"[tuning] factors = [1, 1.0, 2] {FACTORS}"),
        ('factors = [1, "2"]', f"[tuning] factors = [1, '2'] {FACTORS}"),
        ("factors = [true, 2]", f"[tuning] factors = [True, 2] {FACTORS}"),
        ("factors = 3", "[tuning] factors = 3 must be a list"),
        ("factor = [1, 2]", "[tuning] factor is unknown; did you mean 'factors'?"),
        ("severity = 6", "[tuning] severity = 6 must be 1..5"),
        ('corruption = "none"\nseverity = 5',
         "[tuning] severity = 5: clean images have none; leave it out"),
        ("seed = -1", "[tuning] seed = -1 must be 0..2^32-1"),
        ("seed = 1.5", "[tuning] seed = 1.5 must be a whole number"),
    ],
)  # fmt: skip
def test_one_error_each(tmp_path, tuning, error):
    with pytest.raises(GridError) as caught:
        plan(read_grid(write_fair_grid(tmp_path, f"[tuning]\n{tuning}")))
    assert caught.value.problems == (error,)


def test_a_corruption_that_there_is_not(tmp_path):
    with pytest.raises(GridError) as caught:
        read_grid(write_fair_grid(tmp_path, '[tuning]\ncorruption = "fogg"'))
    assert caught.value.problems == (
        "[tuning] corruption = 'fogg' is unknown; did you mean 'fog'?",
    )


def test_nothing_to_tune(tmp_path):
    changes = {
        'methods = ["no_adaptation", "preparation_only", "default", "paper"]': NOTHING,
        "[method.default]\nbatch = 8\nqueries = 4\n[method.paper]\nbatch = 8\nqueries = 4\n": "",
    }
    with pytest.raises(GridError) as caught:
        plan(read_grid(write_fair_grid(tmp_path, "[tuning]", changes=changes)))
    assert caught.value.problems == (
        "[tuning]: no method takes steps that have a learning rate to choose: no_adaptation, "
        "preparation_only; leave out the table, or add a method",
    )


def test_all_errors_come_at_once(tmp_path):
    axis = 'preparations = ["none", "align+head"]'
    grid = write_fair_grid(
        tmp_path,
        '[tuning]\nfactors = [1]\ncorruption = "fogg"\nseed = -1',
        changes={axis: 'preparations = ["alignn"]'},
    )
    with pytest.raises(GridError) as caught:
        read_grid(grid)
    assert caught.value.problems == (
        "[axes] preparations: 'alignn' is unknown; did you mean 'align'?",
        "[tuning] corruption = 'fogg' is unknown; did you mean 'fog'?",
        "[tuning] seed = -1 must be 0..2^32-1",
        f"[tuning] factors = [1] {FACTORS}",
    )


def test_a_trials_folder_says_so(swept):
    _, out, _ = swept
    for result in results_in(out):
        if result["options"]:
            _, source = pmt.RunFolder(out / result["hash"]).read_config()
            assert source.get("trial", False) == result.get("trial", False)
