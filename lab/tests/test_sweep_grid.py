"""Grid files, those of the documents too, and the runs they become: all errors, stable hashes."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
from pathlib import Path

import pytest
from cli_files import write_data, write_model
from frost_overlays import write_overlays
from hypothesis import given
from hypothesis import strategies as st

import pmt
from pmt_lab.cli import main
from pmt_lab.sweep import (
    GridError,
    Plan,
    RunSpec,
    SweepJob,
    fingerprint,
    open_sweep,
    plan,
    read_grid,
    shard,
)
from pmt_lab.sweep.forecasting import estimate
from pmt_lab.sweep.grid_file import _TABLES
from pmt_lab.sweep.sweep_job import Sweep
from pmt_lab.sweep.sweeping import Summary

ROOT = Path(__file__).parents[2]
GRIDS = sorted((ROOT / "lab" / "benchmarks" / "grids").glob("*.toml"))
PAPER_TABLE = ROOT / "lab/pmt_lab/reproduce/grids/cifar10c_default.toml"
PAGE = (ROOT / "lab" / "pages" / "sweeps.md").read_text()
GRID = """
[model]
path = "{model}"
[data]
path = "{data}"
[protocol]
images = 40
held_out = 8
[budget]
macs = 2e8
[axes]
methods = ["no_adaptation", "default", "nodes"]
corruptions = ["none", "gaussian_noise"]
severities = [3, 5]
layers = ["B2"]
seeds = [1, 2]
[options]
batch = 8
queries = 4
[method.nodes]
base = "default"
rule = "node"
layers = "head"
"""


@pytest.fixture
def files(tmp_path):
    return {"model": write_model(tmp_path), "data": write_data(tmp_path)}


def planned(tmp_path, files, *changes: tuple[str, str]) -> Plan:
    text = GRID.format(**files)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "grid.toml"
    path.write_text(text)
    return plan(read_grid(path))


def test_a_grid_becomes_its_runs(tmp_path, files):
    found = planned(tmp_path, files)
    assert [(r.corruption, r.severity) for r in found.runs[::5]] == [
        ("none", 0),
        ("gaussian_noise", 3),
        ("gaussian_noise", 5),
    ]
    assert [(r.method, r.axes["layers"], r.axes["seed"]) for r in found.runs[:5]] == [
        ("no_adaptation", "", None),
        ("default", "B2", 1),
        ("nodes", "head", 1),
        ("default", "B2", 2),
        ("nodes", "head", 2),
    ]
    assert len(found.runs) == 15
    assert (found.held_out, found.test) == (8, 20)
    trained = found.runs[1]
    assert trained.options["queries"] == 4
    assert trained.options["macs"] == 200_000_000
    assert 0 < trained.macs <= 200_000_000
    assert trained.steps * 8 * 4 * 2 == trained.forwards  # images, queries, layers
    assert found.runs[2].options["rule"] == "node"


def test_the_budget_holds_for_every_method(tmp_path, files):
    spent = {r.method: r.macs for r in planned(tmp_path, files).runs}
    assert spent["no_adaptation"] == 0
    step = {r.method: r.macs // r.steps for r in planned(tmp_path, files).runs if r.steps}
    for method, macs in step.items():
        assert 2e8 - macs < spent[method] <= 2e8


def test_without_a_budget_each_method_has_its_epochs(tmp_path, files):
    runs = planned(
        tmp_path, files, ("[budget]\nmacs = 2e8", ""), ("batch", "epochs = 3\nbatch")
    ).runs
    assert {r.steps for r in runs} == {0, 3 * 4}


def test_hashes_do_not_change():
    """Else every sweep that was ever begun would begin again."""
    assert fingerprint({"b": [1, 2.5], "a": "ü"}) == "6eb7ca50e394e03b"
    run = RunSpec(
        method="mine",
        base="default",
        trainer="zeroth_order",
        corruption="fog",
        severity=5,
        options={"layers": "B2", "seed": 1, "learning_rate": 0.5},
        model={"path": "anywhere"},
        data={"path": "anywhere"},
        contents={"model_crc32": 1, "test_crc32": 2},
        protocol={"name": "paper", "seed": 0},
        order={"method": 0},
    )
    assert run.hash == "fb9cf2d5463525c5"
    assert run.hash == dataclasses.replace(run, order={"method": 3}, macs=5).hash
    assert run.hash != dataclasses.replace(run, method="yours").hash


def test_every_run_has_its_own_hash(tmp_path, files):
    runs = planned(tmp_path, files).runs
    assert len({r.hash for r in runs}) == len(runs)


def test_the_hash_is_of_contents_not_of_paths(tmp_path, files):
    before = planned(tmp_path, files).runs
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    files["model"] = files["model"].rename(moved / "renamed.pmt")
    files["data"] = files["data"].rename(moved / "images")
    assert [r.hash for r in planned(tmp_path, files).runs] == [r.hash for r in before]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("queries = 4", "queries = 5"),
        ("macs = 2e8", "macs = 3e8"),
        ("held_out = 8", "held_out = 9"),
        ('layers = ["B2"]', 'layers = ["B1"]'),
        ("[data]", "[data]\ncorruption_seed = 1"),
        ('methods = ["no_adaptation", "default"', 'methods = ["no_adaptation", "paper"'),
    ],
)
def test_what_decides_the_bytes_decides_the_hash(tmp_path, files, old, new):
    before = planned(tmp_path, files).runs[6]
    after = planned(tmp_path, files, (old, new)).runs[6]
    assert before.hash != after.hash


def test_other_images_or_weights_are_another_run(tmp_path, files):
    before = {r.hash for r in planned(tmp_path, files).runs}
    (files["data"] / "test.npz").write_bytes((files["data"] / "train.npz").read_bytes())
    with pytest.raises(GridError, match="train and test are the same images"):
        planned(tmp_path, files)
    other = tmp_path / "other"
    other.mkdir()
    files["data"] = write_data(other, test=24)
    assert before.isdisjoint(r.hash for r in planned(tmp_path, files).runs)


def test_floats_and_whole_numbers_are_one(tmp_path, files):
    one = planned(tmp_path, files, ("batch = 8", "batch = 8\nlearning_rate = 1"))
    other = planned(tmp_path, files, ("batch = 8", "batch = 8\nlearning_rate = 1.0"))
    assert [r.hash for r in one.runs] == [r.hash for r in other.runs]


BAD = """
budget = 3
[modell]
[model]
path = "{model}"
size = 3
[data]
path = "{data}"
[protocol]
name = "papr"
[axes]
methods = ["default", "papr", "twin", "mine", "no_adaptation"]
corruptions = ["fogg", "fog"]
severities = [5, 6]
layers = ["B2", "B7"]
seeds = [1, "2"]
[options]
seeds = 3
epochs = 0
[method.mine]
queries = 2.5
seed = 3
lr = 0.1
[method.twin]
base = "default"
[method.other]
"""


def test_all_errors_come_at_once_and_nothing_starts(tmp_path, files, capsys):
    path = tmp_path / "bad.toml"
    path.write_text(BAD.format(**files))
    assert main(["sweep", str(path), "--out", str(tmp_path / "out")]) == 2
    lines = capsys.readouterr().err.splitlines()
    start = f"pmt: error: {path}: "
    assert all(line.startswith(start) for line in lines)
    text = "\n".join(line.removeprefix(start) for line in lines)
    for wanted in (
        "[modell] is not a table of a grid; did you mean 'model'?",
        "budget = 3 must be a table: [budget]",
        "[model] size is unknown; choose one of path, classes, resolution",
        "[protocol] name = 'papr' is unknown; did you mean 'paper'?",
        "[axes] methods: 'papr' is not a method; did you mean 'paper'?",
        "[axes] methods: 'mine' is not a method; choose one of no_adaptation, "
        "preparation_only, default, ",
        "[axes] corruptions: 'fogg' is unknown; did you mean 'fog'?",
        "[axes] severities: 6 must be 1..5",
        "[axes] layers: layers='B7': 'B7' is neither a block",
        "[axes] seeds = [1, '2'] must be a list of distinct whole numbers",
        "[options] seeds is not an option of any method; did you mean 'seed'?",
        "[method.other] is not among [axes] methods",
        "epochs=0 must be 1..1000000",
    ):
        assert wanted in text, wanted
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (('corruptions = ["none", ', 'corruptions = ["frost", '), "[axes] corruptions"),
        (("[options]", '[tuning]\ncorruption = "frost"\n[options]'), "[tuning] corruption"),
    ],
)
def test_what_a_corruption_lacks_is_told_before_the_first_run(
    tmp_path, files, monkeypatch, change, place
):
    monkeypatch.delenv("PMT_DATA", raising=False)
    planned(tmp_path, files, change)
    sent: list[RunSpec] = []
    monkeypatch.setattr(Sweep, "_run", lambda _, runs, tell: sent.extend(runs) or Summary())
    sweep = open_sweep(SweepJob(tmp_path / "grid.toml", tmp_path / "out"))
    with pytest.raises(GridError) as caught:
        sweep.run()
    assert caught.value.problems == (
        f"{place}: frost needs the photographs frost1.png, frost2.png, frost3.png, frost4.jpg, "
        "frost5.jpg: get them from "
        "https://github.com/hendrycks/robustness/tree/master/ImageNet-C/create_c, put them into a "
        "folder frost and set PMT_DATA to the folder that it is in",
    )
    write_overlays(tmp_path / "frost")
    monkeypatch.setenv("PMT_DATA", str(tmp_path))
    assert sent == []
    sweep.run()
    assert len(sent) > 0


def test_photographs_are_needed_only_where_a_run_is_left(tmp_path, files, monkeypatch, capsys):
    write_overlays(tmp_path / "frost")
    monkeypatch.setenv("PMT_DATA", str(tmp_path))
    change = [
        ('"none", "gaussian_noise"', '"none", "frost"'),
        ('methods = ["no_adaptation", "default", "nodes"]', 'methods = ["no_adaptation"]'),
        ('[method.nodes]\nbase = "default"\nrule = "node"\nlayers = "head"\n', ""),
        ("[options]\nbatch = 8\nqueries = 4\n", ""),
    ]
    runs = planned(tmp_path, files, *change).runs
    command = ["sweep", str(tmp_path / "grid.toml"), "--out", str(tmp_path / "out"), "--jobs", "1"]
    monkeypatch.delenv("PMT_DATA")
    assert main([*command, "--dry-run"]) == 0
    assert main(command) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith(
        f"pmt: error: {tmp_path / 'grid.toml'}: [axes] corruptions: frost needs the photographs "
    )
    assert not (tmp_path / "out").exists()
    monkeypatch.setenv("PMT_DATA", str(tmp_path))
    assert main(command) == 0
    monkeypatch.delenv("PMT_DATA")
    assert main(command) == 0
    assert [run.corruption for run in runs] == ["none", "frost", "frost"]
    assert "3 runs, 3 finished, 0 left\n3 of 3 runs are finished;" in capsys.readouterr().out


def test_with_dask_the_workers_check_their_photographs(tmp_path, files, monkeypatch):
    write_overlays(tmp_path / "frost")
    monkeypatch.setenv("PMT_DATA", str(tmp_path))
    planned(tmp_path, files, ('"none", "gaussian_noise"', '"frost"'))
    monkeypatch.delenv("PMT_DATA")
    job = SweepJob(tmp_path / "grid.toml", tmp_path / "out", dask="tcp://127.0.0.1:9")
    sent: list[RunSpec] = []
    monkeypatch.setattr(SweepJob, "backend", lambda _: contextlib.nullcontext())
    monkeypatch.setattr(Sweep, "_run", lambda _, runs, tell: sent.extend(runs) or Summary())
    open_sweep(job).run()
    assert len(sent) == 10


def test_methods_with_the_same_options_are_refused(tmp_path, files):
    twin = (
        '[method.nodes]\nbase = "default"\nrule = "node"\nlayers = "head"',
        "[method.nodes]\nbase='default'",
    )
    with pytest.raises(GridError, match="'default' and 'nodes' have the same options"):
        planned(tmp_path, files, twin)


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("queries = 4", "queries = true", "[options] queries = True must be a whole number"),
        ("rule =", "seed = 3\nrule =", "[method.nodes] seed: give [axes] seeds instead"),
        ("rule =", "epochs = 3\nrule =", "[method.nodes] epochs: [budget] macs says how long"),
        ("rule =", "lr = 3\nrule =", "[method.nodes] lr is unknown; did you mean 'learning_rate'?"),
        ("macs = 2e8", "macs = 1e3", "method 'default': macs=1000 is less than the "),
        ("macs = 2e8", "macs = 1.5", "[budget] macs = 1.5 must be 1..1e18"),
        ("images = 40", "images = 70", "[protocol] images=70 must be 1 to 60"),
        ("held_out = 8", "held_out = 0", "[protocol] held_out = 0 must be 1 or more"),
        ("images = 40", 'name = "paper"', "[protocol] held_out: the paper's protocol has its own"),
        ("batch = 8", "batch = 80", "batch=80 is larger than the training set of 32 samples"),
        ("[data]", "[data", "is not valid TOML: "),
        ('path = "', 'path = "nowhere', "[model] "),
    ],
)
def test_one_error_each(tmp_path, files, old, new, error):
    with pytest.raises(GridError) as caught:
        planned(tmp_path, files, (old, new))
    assert any(problem.startswith(error) or error in problem for problem in caught.value.problems)


@given(st.integers(0, 40), st.integers(1, 7))
def test_shards_part_the_runs(count, shards):
    runs = tuple(range(count))
    parts = [shard(runs, number, shards) for number in range(1, shards + 1)]
    assert sorted(run for part in parts for run in part) == list(runs)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_dry_run_says_what_is_left_and_starts_nothing(tmp_path, files, capsys):
    path = tmp_path / "grid.toml"
    path.write_text(GRID.format(**files))
    out = tmp_path / "out"
    assert main(["sweep", str(path), "--out", str(out), "--dry-run", "--json", "-"]) == 0
    printed = capsys.readouterr()
    assert printed.err.startswith("15 runs, 0 finished, 15 left\n")
    figures = json.loads(printed.out)
    assert figures["left"] == 15
    assert [run["finished"] for run in figures["runs"]] == [False] * 15
    assert figures["hours"] > 0
    # Training, and test images twice, held-out ones 1 + evaluations times.
    macs = plan(read_grid(path)).model.macs
    runs = plan(read_grid(path)).runs
    assert figures["macs"] == sum(
        run.macs + macs * (2 * 20 + (run.evaluations + 1) * 8) for run in runs
    )
    assert not out.exists()


def timed(speed, *, method="nodes", threads=1, trainer="zeroth_order"):
    """Return a result whose training took a million seconds at `speed` GMAC/s."""
    cost = {"macs": 10**15, "train_seconds": 10**6 / speed}
    return {"axes": {"method": method}, "trainer": trainer, "threads": threads, **cost}


@pytest.mark.parametrize(
    ("finished", "elsewhere", "gmacs"),
    [
        ([timed(2, threads=0)], [], 2),
        ([timed(2, threads=0), timed(8)], [], 8),
        ([timed(2, threads=0), timed(8), timed(6)], [], 7),
        ([timed(2, threads=0)], [[timed(8)]], 2),
        ([], [[timed(3, threads=0)], [timed(8)]], 3),
        ([], [[], [timed(8), timed(3, threads=0)]], 8),
        ([timed(2, method="other")], [[timed(8)]], 8),
        ([timed(2, method="other")], [[timed(5, method="another")]], 2),
        ([timed(2, trainer="backprop", method="other")], [[timed(5, method="another")]], 5),
    ],
)
def test_a_run_is_forecast_at_the_speed_of_the_runs_most_like_it(
    tmp_path, files, finished, elsewhere, gmacs
):
    """As its method here, then elsewhere, first with as many threads; then as its trainer."""
    made = planned(tmp_path, files)
    run = next(run for run in made.runs if run.method == "nodes")
    left = dataclasses.replace(run, macs=3600 * 10**9)
    rest = {"held_out": 0, "test": 0, "jobs": 2}
    found = estimate([left], finished, made.model, **rest, elsewhere=elsewhere)
    assert found.hours == pytest.approx(1 / gmacs, rel=1e-3)


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "1/", "a/b", "-1/2"])
def test_a_shard_is_one_of_n(text, capsys):
    assert main(["sweep", "grid.toml", "--out", "out", f"--shard={text}"]) == 2
    assert "--shard" in capsys.readouterr().err


def test_runs_are_frozen(tmp_path, files):
    with pytest.raises(dataclasses.FrozenInstanceError):
        planned(tmp_path, files).runs[0].method = "other"


@pytest.mark.parametrize("path", GRIDS, ids=lambda path: path.stem)
def test_a_grid_can_be_read(path):
    grid = read_grid(path)
    assert "no_adaptation" in [method.name for method in grid.methods]


def test_the_page_shows_a_grid_of_the_papers_table():
    shown = re.search(r"```toml\n(.*?)```", PAGE, re.DOTALL).group(1)
    file = PAPER_TABLE.read_text()
    lines = [line for line in file.splitlines() if not line.startswith("#")]
    assert shown.splitlines() == lines


def test_the_grid_of_the_papers_table_has_its_corruptions():
    grid = read_grid(PAPER_TABLE)
    assert len(grid.corruptions) == 12
    model = pmt.load("cifar10_mcunet")
    trained = [model.core.ops()[op]["name"] for op in model.select_layers(grid.layers[0])]
    assert trained == [f"b{block}.pointwise1" for block in (4, 5, 6, 7)] + ["classifier"]


def test_the_table_of_entries_is_current():
    rows = dict(re.findall(r"^\| `\[(\w+)(?:\.NAME)?\]` \| ([^|]*) \|", PAGE, re.MULTILINE))
    assert set(rows) == set(_TABLES)
    for table, entries in _TABLES.items():
        for entry in entries:
            assert f"`{entry}`" in rows[table], f"[{table}] {entry}"
