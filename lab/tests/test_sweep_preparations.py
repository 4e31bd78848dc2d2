"""Preparation as an axis of a sweep: the same starts for every method, and the start alone."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from sweep_files import FAIR_RUNS, left_by, write_fair_grid, write_grid

import pmt
from pmt import methods
from pmt.protocol import split
from pmt.protocol.data_source import DataSource
from pmt.train.run.loop import Run
from pmt_lab.cli import main
from pmt_lab.sweep import GridError, plan, read_grid, run_all

AXIS = 'preparations = ["none", "align+head"]'
COLUMNS = ("--rows", "corruption", "--columns", "method,preparation")


def runs_of(grid):
    return plan(read_grid(grid)).runs


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A grid, and the folder of its finished runs."""
    folder = tmp_path_factory.mktemp("swept")
    grid = write_fair_grid(folder)
    assert run_all(runs_of(grid), folder / "out", jobs=1).failed == {}
    return grid, folder / "out"


def test_every_method_runs_from_every_start(tmp_path):
    runs = runs_of(write_fair_grid(tmp_path))
    assert [(r.method, r.axes["preparation"], r.axes["seed"]) for r in runs] == [
        ("no_adaptation", "none", None),
        ("preparation_only", "align+head", 1),
        ("default", "none", 1),
        ("default", "align+head", 1),
        ("paper", "none", 1),
        ("paper", "align+head", 1),
        ("preparation_only", "align+head", 2),
        ("default", "none", 2),
        ("default", "align+head", 2),
        ("paper", "none", 2),
        ("paper", "align+head", 2),
    ]
    assert len(runs) == FAIR_RUNS
    assert [r.options.get("preparation") for r in runs[:4]] == [
        None, "align+head", "none", "align+head"
    ]  # fmt: skip
    assert runs[2].title == "default, gaussian_noise 5, B2,head, seed 1"
    assert runs[3].title == "default, gaussian_noise 5, B2,head, align+head, seed 1"


def test_a_method_with_a_preparation_of_its_own_keeps_it(tmp_path):
    own = {"[method.paper]": '[method.paper]\npreparation = "head"'}
    runs = runs_of(write_fair_grid(tmp_path, changes=own))
    assert [r.preparation for r in runs if r.method == "paper"] == ["head", "head"]
    assert {r.preparation for r in runs if r.method == "default"} == {"none", "align+head"}


def test_without_the_axis_each_method_keeps_its_own(tmp_path):
    runs = runs_of(write_fair_grid(tmp_path, changes={AXIS: ""}))
    assert {r.method: r.preparation for r in runs} == {
        "no_adaptation": "none",
        "preparation_only": "align+head",
        "default": "align+head",
        "paper": "none",
    }


def test_the_axis_names_the_runs_of_a_grid_without_it(tmp_path):
    """The same options are the same run, whichever way they were given."""
    plain, axis = tmp_path / "plain", tmp_path / "axis"
    plain.mkdir()
    axis.mkdir()
    before = {r.hash for r in runs_of(write_fair_grid(plain, changes={AXIS: ""}))}
    after = {r.hash for r in runs_of(write_fair_grid(axis))}
    assert len(before) == 7
    assert before < after


def test_the_cost_of_the_start_is_part_of_the_budget(tmp_path):
    runs = {(r.method, r.preparation): r for r in runs_of(write_fair_grid(tmp_path))}
    start = runs["preparation_only", "align+head"]
    assert start.steps == 0
    assert 0 < start.macs < 25_000_000
    for method in ("default", "paper"):
        plain, prepared = runs[method, "none"], runs[method, "align+head"]
        step = plain.macs // plain.steps
        assert 25_000_000 - step < plain.macs <= 25_000_000
        assert 25_000_000 - step < prepared.macs <= 25_000_000
        assert prepared.steps == (prepared.macs - start.macs) // step < plain.steps


def test_the_start_alone_is_a_run_like_others(swept):
    grid, out = swept
    spec = next(r for r in runs_of(grid) if r.method == "preparation_only")
    result = json.loads((out / spec.hash / "result.json").read_text())

    model = pmt.load(spec.model["path"])
    source = DataSource(spec.data["path"], "gaussian_noise", 5)
    images = split(
        "default", source.pool("train", model), source.pool("test", model), images=40, held_out=8
    )
    before = {"test": model.evaluate(images.test), "held_out": model.evaluate(images.held_out)}
    trainer = methods.trainer("preparation_only", layers="B2,head", head_epochs=2, seed=1)
    trainer.preparation.apply(model, images.train)
    after = {"test": model.evaluate(images.test), "held_out": model.evaluate(images.held_out)}
    assert after["held_out"].loss < before["held_out"].loss
    for part in ("test", "held_out"):
        assert result["before"][part]["loss"] == before[part].loss
        assert result["after"][part]["loss"] == after[part].loss
        assert result["after"][part]["accuracy"] == after[part].accuracy
    assert result["after"]["clean"]["accuracy"] == model.evaluate(images.clean_test).accuracy
    best = pmt.load(out / spec.hash)
    assert (best.logits(images.test.images) == model.logits(images.test.images)).all()
    assert result["macs"] == trainer.preparation.cost(model, 32).macs == spec.macs > 0
    assert (result["steps"], result["forwards"]) == (0, 0)
    assert result["axes"] == {
        "method": "preparation_only",
        "corruption": "gaussian_noise",
        "severity": 5,
        "layers": "B2,head",
        "preparation": "align+head",
        "seed": 1,
    }


@pytest.mark.parametrize("where", ["_prepare", "_end_phase", "_save", "_end_epoch"])
def test_the_start_alone_goes_on_where_it_was_stopped(swept, tmp_path, monkeypatch, where):
    grid, out = swept
    spec = next(r for r in runs_of(grid) if r.method == "preparation_only")

    def stop(self, *arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, where, stop)
    with pytest.raises(KeyboardInterrupt):
        run_all([spec], tmp_path / "out", jobs=1)
    monkeypatch.undo()
    assert not (tmp_path / "out" / spec.hash / "result.json").exists()
    assert run_all([spec], tmp_path / "out", jobs=1).finished == [spec.hash]
    assert left_by(tmp_path / "out") == {spec.hash: left_by(out)[spec.hash]}


def test_a_report_has_columns_for_every_start(swept, capsys):
    _, out = swept
    assert main(["report", str(out), *COLUMNS]) == 0
    printed = capsys.readouterr().out
    assert (
        "| corruption | no_adaptation, none | preparation_only, align+head | default, none | "
        "default, align+head | paper, none | paper, align+head | mean |"
    ) in printed
    assert "missing" not in printed
    assert main(["report", str(out), "--columns", "preparation", "--json", "-"]) == 0
    figures = json.loads(capsys.readouterr().out)
    cells = {(c["method"], c["preparation"]): c for c in figures["cells"]}
    assert {key: len(cell["values"]) for key, cell in cells.items()} == {
        ("no_adaptation", "none"): 1,
        ("no_adaptation", "align+head"): 0,
        ("preparation_only", "none"): 0,
        ("preparation_only", "align+head"): 2,
        ("default", "none"): 2,
        ("default", "align+head"): 2,
        ("paper", "none"): 2,
        ("paper", "align+head"): 2,
    }
    assert figures["missing"] == 0


def test_starts_are_not_averaged(swept, capsys):
    _, out = swept
    assert main(["report", str(out), "--rows", "method"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("pmt: error: default, gaussian_noise: runs differ in preparation (")
    assert error.endswith(
        "; choose with --where preparation=..., or put preparation into --rows or --columns\n"
    )


PAGE = (Path(__file__).parents[1] / "pages" / "sweeps.md").read_text()


def write_grid_of_the_page(folder):
    """Write the grid that the page shows, for small data, fewer steps and two corruptions."""
    write_fair_grid(folder)
    (text,) = re.findall(r"^```toml\n(\[model\].*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    for old, new in (
        (r"cifar10_mcunet", str(folder / "aligned.pmt")),
        (r"cifar-10-batches-bin", str(folder / "data")),
        (r"images = 1500\nheld_out = 500\ntest_images = 1000", "images = 40\nheld_out = 8"),
        (r"2\.4e12", "2.5e7"),
        (r"corruptions = \[.*?\]", 'corruptions = ["gaussian_noise", "fog"]'),
        (r"seeds = \[1, 2, 3\]", "seeds = [1, 2]"),
    ):
        text, count = re.subn(old, new, text, flags=re.DOTALL)
        assert count == 1, old
    small = "[options]\nbatch = 8\nqueries = 4\nhead_epochs = 2\n"
    (folder / "grid.toml").write_text(text + small)


def test_the_commands_of_the_page_run_on_its_grid(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    write_grid_of_the_page(tmp_path)
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"^pmt-lab (?:sweep grid\.toml --out|report) .*$", PAGE, re.MULTILINE)
    assert len(commands) == 8
    for command in commands:
        arguments = shlex.split(command, comments=True)[1:]
        if arguments[0] == "sweep":
            arguments += ["--jobs", "1"]
        if "runs/shard1" in arguments:
            for place, folder in enumerate(sorted(Path("runs/table").iterdir())):
                shutil.copytree(folder, Path(f"runs/shard{1 + place % 2}") / folder.name)
        assert main(arguments) == 0, command
    printed = capsys.readouterr().out
    assert "| method, preparation | gaussian_noise | fog | better than it in |" in printed
    assert "difference to no_adaptation, none, in points**" in printed
    assert all(Path(name).is_file() for name in ("curves.png", "clean.tex", "table.json"))


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        (AXIS, 'preparations = ["none", "alignn"]',
         "[axes] preparations: 'alignn' is unknown; did you mean 'align'?"),
        (AXIS, "preparations = []",
         "[axes] preparations = [] must be a list of distinct names, at least one"),
        (AXIS, "preparations = [1]",
         "[axes] preparations = [1] must be a list of distinct names"),
        (AXIS, 'preparations = "none"', "[axes] preparations = 'none' must be a list"),
        (AXIS, 'preparations = ["none"]',
         "[axes] preparations: 'preparation_only' needs one other than none; add one, or leave out "
         "the method"),
        ("head_epochs = 2", 'preparation = "none"',
         "[options] preparation: give [axes] preparations instead"),
        ("[method.paper]", '[method.paper]\npreparation = "alignn"',
         "method 'paper': preparation='alignn' "),
        ("[method.paper]", '[method.paper]\nbase = "default"\npreparation = "none"',
         "[axes] methods: 'default' and 'paper' have the same options; leave one out"),
    ],
)  # fmt: skip
def test_one_error_each(tmp_path, old, new, error):
    with pytest.raises(GridError) as caught:
        runs_of(write_fair_grid(tmp_path, changes={old: new}))
    (problem,) = caught.value.problems
    assert problem.startswith(error)


def test_results_of_earlier_sweeps_can_be_read(tmp_path, capsys):
    grid = write_grid(tmp_path, macs=1e7, seeds="[1]")
    out = tmp_path / "out"
    assert run_all(runs_of(grid), out, jobs=1).failed == {}
    for path in out.glob("*/result.json"):
        result = json.loads(path.read_text())
        del result["axes"]["preparation"]
        if result["options"]:
            wanted = result["options"].pop("preparation")
            result["options"] |= dict(
                zip(
                    ("align_images", "head_epochs"),
                    (1000, 12) if wanted == "align+head" else (0, 0),
                    strict=True,
                )
            )
        path.write_text(json.dumps(result))
    assert main(["report", str(out)]) == 0
    assert "| default |" in capsys.readouterr().out
    assert main(["report", str(out), *COLUMNS]) == 0
    assert (
        "| corruption | no_adaptation, none | default, align+head | paper, none | mean |"
    ) in capsys.readouterr().out
