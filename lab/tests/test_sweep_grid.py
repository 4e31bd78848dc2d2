"""Grid files, those of the documents too, and the runs they become: all errors, stable hashes."""

import contextlib
import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest
from cli_files import write_data, write_model
from frost_overlays import write_overlays
from train.test_options import DECLARED, NEEDS, _toml, another, outside

import pmt
from pmt_lab.cli import main
from pmt_lab.sweep import (
    GridError,
    Plan,
    RunSpec,
    Sweep,
    fingerprint,
    open_sweep,
    plan,
    read_grid,
)
from pmt_lab.sweep.grid import TABLES
from pmt_lab.sweep.planning import method_options

ROOT = Path(__file__).parents[2]
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
    assert len({r.hash for r in found.runs}) == len(found.runs) == 15
    trained = found.runs[1]
    assert (trained.options["queries"], trained.options["macs"]) == (4, 200_000_000)
    assert found.runs[2].options["rule"] == "node"
    assert found.runs[0].macs == 0
    for run in (trained, found.runs[2]):  # the budget holds for every method
        trainer = pmt.methods.trainer(run.base, **run.options)
        step = trainer.cost(found.model).macs
        assert 2e8 - step < run.macs <= 2e8
    with pytest.raises(dataclasses.FrozenInstanceError):
        trained.method = "other"
    epochs = (("[budget]\nmacs = 2e8", ""), ("batch", "epochs = 3\nbatch"))
    run = planned(tmp_path, files, *epochs).runs[1]
    trainer = pmt.methods.trainer(run.base, **run.options)
    start = trainer.preparation.cost(found.model, 32).macs
    assert run.macs == start + 3 * 4 * trainer.cost(found.model).macs


def test_a_grid_has_the_entries_of_the_one_that_it_is_like(tmp_path, files):
    planned(tmp_path, files)
    path = tmp_path / "other.toml"
    path.write_text('like = "grid.toml"\n[axes]\nseeds = [7]\n[method.nodes]\nbase = "paper"\n')
    first, other = read_grid(tmp_path / "grid.toml"), read_grid(path)
    assert other.seeds == (7,)
    assert dict(other.methods[2].options) == {}
    changes = {"path": first.path, "seeds": first.seeds, "methods": first.methods}
    assert dataclasses.replace(other, **changes) == first


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


def test_the_hash_is_of_contents_not_of_paths(tmp_path, files):
    before = [r.hash for r in planned(tmp_path, files).runs]
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    files["model"] = files["model"].rename(moved / "renamed.pmt")
    files["data"] = files["data"].rename(moved / "images")
    assert [r.hash for r in planned(tmp_path, files).runs] == before
    other = tmp_path / "other"
    other.mkdir()
    files["data"] = write_data(other, test=24)
    assert not {r.hash for r in planned(tmp_path, files).runs} & set(before)


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("queries = 4", "queries = 5", False),
        ("macs = 2e8", "macs = 3e8", False),
        ("held_out = 8", "held_out = 9", False),
        ('layers = ["B2"]', 'layers = ["B1"]', False),
        ("[data]", "[data]\ncorruption_seed = 1", False),
        ('methods = ["no_adaptation", "default"', 'methods = ["no_adaptation", "paper"', False),
        ("batch = 8", "batch = 8\nlearning_rate = 1", False),
        ("severities = [3, 5]", "severities = [3]", True),
    ],
)
def test_what_decides_the_bytes_decides_the_hash(tmp_path, files, old, new, same):
    before = planned(tmp_path, files).runs[6]
    after = planned(tmp_path, files, (old, new)).runs[6]
    assert (before.hash == after.hash) == same
    one = planned(tmp_path, files, ("batch = 8", "batch = 8\nlearning_rate = 1")).runs[6]
    other = planned(tmp_path, files, ("batch = 8", "batch = 8\nlearning_rate = 1.0")).runs[6]
    assert one.hash == other.hash


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
[method.twin]
base = "default"
[method.other]
[tuning]
factors = [1]
seed = -1
"""


def test_all_errors_come_at_once_and_nothing_starts(tmp_path, files, capsys):
    path = tmp_path / "bad.toml"
    path.write_text(BAD.format(**files))
    assert main(["sweep", str(path), "--out", str(tmp_path / "out")]) == 2
    lines = capsys.readouterr().err.splitlines()
    start = f"pmt-lab: error: {path}: "
    assert all(line.startswith(start) for line in lines)
    text = "\n".join(line.removeprefix(start) for line in lines)
    for wanted in (
        "[modell] is not a table of a grid; did you mean 'model'?",
        "budget = 3 must be a table: [budget]",
        "[model] size is unknown; choose one of path, classes, resolution",
        "[protocol] name = 'papr' is unknown; did you mean 'paper'?",
        "[axes] methods: 'papr' is not a method; did you mean 'paper'?",
        "[axes] methods: 'mine' is not a method; ",
        "[axes] corruptions: 'fogg' is unknown; did you mean 'fog'?",
        "[axes] severities: 6 must be 1..5",
        "[axes] layers: layers='B7': 'B7' is neither a block",
        "[axes] seeds = [1, '2'] must be a list of distinct whole numbers",
        "[options] seeds is not an option of any method; did you mean 'seed'?",
        "[method.other] is not among [axes] methods",
        "[tuning] factors = [1] must be a list of two or more distinct numbers > 0, for example",
        "[tuning] seed = -1 must be 0..2^32-1",
        "epochs=0 must be 1..1000000",
    ):
        assert wanted in text, wanted
    assert not (tmp_path / "out").exists()


TWIN = '[method.nodes]\nbase = "default"\nrule = "node"\nlayers = "head"'


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("queries = 4", "queries = true", "queries=True must be an int"),
        ("rule =", "seed = 3\nrule =", "[method.nodes] seed: give [axes] seeds instead"),
        ("rule =", "epochs = 3\nrule =", "[method.nodes] epochs: [budget] macs says how long"),
        ("rule =", "lr = 3\nrule =", "[method.nodes] lr is unknown; "),
        ("macs = 2e8", "macs = 1e3", "method 'default': macs=1000 is less than the "),
        ("macs = 2e8", "macs = 1.5", "[budget] macs = 1.5 must be 1..1e18"),
        ("images = 40", "images = 70", "[protocol] images=70 must be 1 to 60"),
        ("held_out = 8", "held_out = 3", "[protocol] held_out = 3 must be 4 or more"),
        ("images = 40", 'name = "paper"', "[protocol] held_out: the paper's protocol has its own"),
        ("batch = 8", "batch = 80", "batch=80 is larger than the training set of 32 samples"),
        ("[data]", "[data", "is not valid TOML: "),
        ('path = "', 'path = "nowhere', "[model] "),
        (TWIN, '[method.nodes]\nbase = "default"', "'default' and 'nodes' have the same options"),
        ("layers =", "preparations = []\nlayers =", "[axes] preparations = [] must be a list of"),
        (
            "layers =",
            "preparations = [1]\nlayers =",
            "preparations = [1] must be a list of distinct names",
        ),
        (
            "layers =",
            'preparations = ["alignn"]\nlayers =',
            "'alignn' is unknown; did you mean 'align'?",
        ),
    ],
)
def test_one_error_each(tmp_path, files, old, new, error):
    with pytest.raises(GridError) as caught:
        planned(tmp_path, files, (old, new))
    assert any(error in problem for problem in caught.value.problems), caught.value.problems


def test_classes_that_leave_too_few_images_held_out_are_told_before_the_first_run(tmp_path, files):
    few = (("images = 40", "images = 10"), ("held_out = 8", "held_out = 5"))
    with (
        pytest.warns(UserWarning, match=r"^held_out=5: 2 are: a class keeps"),
        pytest.raises(GridError) as caught,
    ):
        planned(tmp_path, files, *few, ("batch = 8", "batch = 2"))
    assert caught.value.problems == (
        "[protocol] held_out=5: classes and copies leave 2 of them; a choice needs 4 or more, so "
        "take more images",
    )


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
    sweep = open_sweep(tmp_path / "grid.toml", tmp_path / "out")
    with pytest.raises(GridError) as caught:
        sweep.run()
    (problem,) = caught.value.problems
    assert problem.startswith(f"{place}: frost needs the photographs frost1.png, ")
    assert not (tmp_path / "out").exists()
    # With photographs it goes on; the workers of a cluster have their own.
    begun: list[Sweep] = []
    monkeypatch.setattr("pmt_lab.sweep.sweeping.run_all", lambda *_, **__: begun.append(1) or 1 / 0)
    monkeypatch.setattr("pmt_lab.sweep.sweeping._backend", lambda dask: contextlib.nullcontext())
    with pytest.raises(ZeroDivisionError):
        sweep.run(dask="tcp://127.0.0.1:9")
    write_overlays(tmp_path / "frost")
    monkeypatch.setenv("PMT_DATA", str(tmp_path))
    with pytest.raises(ZeroDivisionError):
        sweep.run()
    assert len(begun) == 2


def test_dry_run_says_what_is_left_and_starts_nothing(tmp_path, files, capsys):
    runs = planned(tmp_path, files).runs
    out = tmp_path / "out"
    command = ["sweep", str(tmp_path / "grid.toml"), "--out", str(out), "--dry-run"]
    assert main([*command, "--json", "-"]) == 0
    printed = capsys.readouterr()
    macs = sum(run.macs for run in runs)
    assert printed.err == f"15 runs, 0 finished, 15 left, {macs / 1e9:,.0f} GMAC\n"
    figures = json.loads(printed.out)
    assert [run["finished"] for run in figures["runs"]] == [False] * 15
    assert figures["macs_left"] == macs
    assert not out.exists()


def test_the_page_shows_a_grid_of_the_papers_table():
    shown = re.search(r"```toml\n(.*?)```", PAGE, re.DOTALL).group(1)
    lines = [line for line in PAPER_TABLE.read_text().splitlines() if not line.startswith("#")]
    assert shown.splitlines() == lines
    grid = read_grid(PAPER_TABLE)
    assert len(grid.corruptions) == 12
    model = pmt.load("cifar10_mcunet")
    names = {layer.index: layer.name for layer in model.layers}
    trained = [names[op] for op in model.select_layers(grid.layers[0])]
    assert trained == [f"b{block}.pointwise1" for block in (4, 5, 6, 7)] + ["classifier"]


def test_the_table_of_entries_is_current():
    rows = dict(re.findall(r"^\| `\[(\w+)(?:\.NAME)?\]` \| ([^|]*) \|", PAGE, re.MULTILINE))
    assert set(rows) == set(TABLES)
    for table, entries in TABLES.items():
        for entry in entries:
            assert f"`{entry}`" in rows[table], f"[{table}] {entry}"


def options_of(path: Path, options: dict[str, Any]) -> dict[str, Any]:
    lines = [f"{name} = {_toml(value)}" for name, value in options.items()]
    head = ["[model]", 'path = "m"', "[data]", 'path = "d"', "[method.default]"]
    path.write_text("\n".join([*head, *lines]))
    problems: list[str] = []
    found = method_options(read_grid(path), problems)["default"]
    assert problems == []
    return found


# All but those that the grid has elsewhere: its axes and its budget.
@pytest.mark.parametrize(
    "name", [name for name in DECLARED if name not in ("layers", "seed", "macs")]
)
def test_every_option_goes_through_a_grid(name, tmp_path):
    option = DECLARED[name]
    wanted = {**NEEDS.get(name, {}), name: another(option.values, option.default)}
    found = options_of(tmp_path / "grid.toml", wanted)
    assert pmt.TrainingOptions(**found) == pmt.TrainingOptions(**wanted)
    for value in outside(option.values):
        found = options_of(tmp_path / "grid.toml", {name: value})
        with pytest.raises(ValueError, match=f"^{name}="):
            pmt.methods.trainer("default", **found)
