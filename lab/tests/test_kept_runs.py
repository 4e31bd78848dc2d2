"""Runs kept as one file without weights: the tables from it are those of the folders."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from report_files import IMAGES, write_result, write_results

from pmt_lab.cli import main
from pmt_lab.report import ReportJob, make_report, mean_curve, read_runs

RESULTS = Path(__file__).parents[1] / "results"
REMEDY = "give the --out of a `pmt-lab sweep`, or a file that `pmt-lab report --keep` wrote"


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    write_results(folder)
    return folder


@pytest.fixture
def kept(out, tmp_path):
    make_report(ReportJob([out])).keep(tmp_path / "kept.json")
    return tmp_path / "kept.json"


def printed(capsys, *arguments):
    assert main(["report", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def refused(capsys, path):
    assert main(["report", str(path)]) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("metric", ["test_accuracy", "before_test_accuracy", "test_loss", "macs"])
@pytest.mark.parametrize("form", ["md", "tex", "csv"])
def test_the_tables_are_those_of_the_folders(out, kept, capsys, form, metric):
    options = ("--format", form, "--metric", metric, "--baseline", "paper")
    assert printed(capsys, kept, *options) == printed(capsys, out, *options)


def test_keep_says_what_it_wrote(out, tmp_path, capsys):
    path = tmp_path / "kept.json"
    table = printed(capsys, out)
    assert printed(capsys, out, "--keep", path) == f"{table}13 runs in {path}\n"
    kept = json.loads(path.read_text())
    assert list(kept) == ["pmt", "commit", "date", "unfinished", "shared", "starts", "runs"]
    assert kept["unfinished"] == ["0123456789abcdef"]
    assert kept["shared"]["paper"]["options"] == {"queries": 4}
    assert [run["axes"]["method"] for run in kept["runs"]][:3] == ["none", "paper", "paper"]
    assert len(path.read_text().splitlines()) < 60


def test_a_file_again_is_the_same_file(out, kept, tmp_path):
    runs = {run.folder.name: run for run in read_runs([out])[0]}
    for run in read_runs([kept])[0]:
        assert run.fields == runs[run.folder.name].fields
    again = tmp_path / "again.json"
    make_report(ReportJob([kept])).keep(again)
    assert again.read_bytes() == kept.read_bytes()


def test_only_the_runs_of_the_table_are_kept(out, tmp_path, capsys):
    path = tmp_path / "fog.json"
    fog = printed(capsys, out, "--where", "corruption=fog", "--out", tmp_path / "fog.md")
    assert printed(
        capsys, out, "--where", "corruption=fog", "--out", tmp_path / "fog.md", "--keep", path
    ) == (f"{fog}6 runs in {path}\n")
    assert printed(capsys, path) == (tmp_path / "fog.md").read_text()


def test_files_and_folders_are_one_sweep(out, kept, tmp_path, capsys):
    together = printed(capsys, out)
    assert printed(capsys, kept, out) == together
    half = tmp_path / "half.json"
    make_report(ReportJob([out], where={"method": ["paper"]})).keep(half)
    for run in read_runs([half])[0]:
        (out / run.folder.name / "result.json").unlink()
        (out / run.folder.name / "config.toml").write_text("")
    assert printed(capsys, out, half) == together


def test_options_keep_their_types(tmp_path, capsys):
    out = tmp_path / "out"
    for seed, value in enumerate([1, True, 1.0, "1", 1], 1):
        options = {"layers": "B2", "seed": seed, "sharing": value, "preparation": "head"}
        write_result(out, "paper", "fog", seed, np.arange(IMAGES) < 9, options=options)
    kept = tmp_path / "kept.json"
    make_report(ReportJob([out], rows=("sharing",))).keep(kept)
    values = {run.seed: run.fields["sharing"] for run in read_runs([kept])[0]}
    assert [repr(values[seed]) for seed in range(1, 6)] == ["1", "True", "1.0", "'1'", "1"]
    assert json.loads(kept.read_text())["shared"]["paper"]["options"]["sharing"] == 1
    options = ("--rows", "preparation,sharing")
    assert printed(capsys, kept, *options) == printed(capsys, out, *options)


def test_chosen_rates_and_losses_that_are_not_finite(tmp_path, capsys):
    trial = {"factor": 1.0, "learning_rate": 0.1, "held_out_loss": None, "hash": "0" * 16}
    tuning = {"factor": 0.3, "learning_rate": 0.03, "at_edge": True, "trials": [trial]}
    options = {"layers": "B2", "seed": 1, "queries": 4, "preparation": "none"}
    out, kept = tmp_path / "out", tmp_path / "kept.json"
    right = np.arange(IMAGES) < 9
    folder = write_result(out, "paper", "fog", 1, right, options=options, tuning=tuning)
    result = json.loads((folder / "result.json").read_text())
    result["after"]["test"]["loss"] = math.inf
    (folder / "result.json").write_text(json.dumps(result))
    make_report(ReportJob([out])).keep(kept)
    table = printed(capsys, kept, "--metric", "test_loss")
    assert table == printed(capsys, out, "--metric", "test_loss")
    assert "| paper | inf |" in table
    assert "| paper | none | B2 | 0.3 | 0.03 | not finite |" in table


def test_curves_have_twelve_points(out, tmp_path):
    runs, _ = read_runs([out])
    long = next(run for run in runs if run.seed == 1).folder
    record = {"kind": "epoch", "step": 1, "changed": 1, "forwards": 4, "seconds": 1.0}
    records = [{**record, "epoch": n, "macs": n, "valid_loss": 1 / 3} for n in range(1, 101)]
    (long / "metrics.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    kept = tmp_path / "kept.json"
    make_report(ReportJob([out])).keep(kept)
    curves = {run.folder.name: run.curve() for run in read_runs([kept])[0]}
    assert len(curves[long.name]) == 12
    assert curves[long.name][0] == (1, 0.333333)
    assert curves[long.name][-1] == (100, 0.333333)
    other = next(run for run in runs if run.seed == 2)
    assert curves[other.folder.name] == [(m, pytest.approx(v)) for m, v in other.curve()]
    table = make_report(ReportJob([kept])).table
    assert mean_curve(table.cells[("paper",), ("fog",)]).gmacs.size > 0
    assert mean_curve(table.cells[("none",), ("fog",)]) is None
    assert mean_curve(table.cells[("paper",), ("fog",)], "accuracy") is None


def test_files_that_hold_no_runs(kept, tmp_path, capsys):
    whole = kept.read_text()
    kept.write_text(whole[: len(whole) // 2])
    assert f"pmt: error: {kept}: is not valid JSON: " in refused(capsys, kept)
    for text in ("[]", "{}", whole.replace('"starts"', '"ends"')):
        kept.write_text(text)
        assert refused(capsys, kept) == f"pmt: error: {kept}: holds no runs of a sweep; {REMEDY}\n"
    study = RESULTS / "cifar10c-accuracy.json"
    assert refused(capsys, study) == f"pmt: error: {study}: holds no runs of a sweep; {REMEDY}\n"
    kept.write_text(whole.replace("0123456789abcdef", "").replace('[""]', "[1]"))
    assert refused(capsys, kept) == f"pmt: error: {kept}: unfinished is damaged; {REMEDY}\n"
    missing = tmp_path / "none.json"
    assert refused(capsys, missing) == f"pmt: error: {missing}: no such folder or file; {REMEDY}\n"


@pytest.mark.parametrize(
    "change",
    [
        {"before": 99},
        {"before": -1},
        {"before": None},
        {"base": "other"},
        {"after": 1},
        {"after": {"test": {"loss": 1.0}}},
        {"axes": {}},
        {"hash": 1},
        {"order": {"method": "first"}},
        {"options": []},
        {"curve": [[1]]},
        {"curve": [[1, "low"]]},
        {"tuning": {}},
    ],
)
def test_damaged_runs(kept, capsys, change):
    value = json.loads(kept.read_text())
    value["runs"][2] |= change
    kept.write_text(json.dumps(value))
    assert refused(capsys, kept) == f"pmt: error: {kept}: run 2 is damaged; {REMEDY}\n"


def test_a_file_is_whole_or_as_it_was(out, kept, capsys, monkeypatch):
    before = kept.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert main(["report", str(out), "--where", "method=paper", "--keep", str(kept)]) == 2
    assert "could not write" in capsys.readouterr().err
    assert kept.read_bytes() == before
    assert [path.name for path in kept.parent.iterdir() if path != out] == ["kept.json"]


def test_columns_as_rows(out, capsys):
    table = printed(capsys, out, "--transpose", "--baseline", "paper").splitlines()
    assert table[2:7] == [
        "| corruption | none | paper | default |",
        "| --- | --- | --- | --- |",
        "| gaussian_noise | 20.0 (10.5..34.8) | 62.5 ± 2.5 (47.4..75.5) | "
        "**80.0 ± 2.5 (65.8..89.3)** |",
        "| fog | 50.0 (35.2..64.8) | **55.0 ± 2.5 (40.2..69.0)** | "
        "**55.0 ± 7.1 (40.6..68.6) [2 of 3]** |",
        "| mean | 35.0 | 58.8 | 67.5 |",
    ]
    assert "- Bold: best of its row." in table
    assert "| corruption | none | default |" in table
    assert "| better than it in | 0 of 2 (0 clearly) | 1 of 2 (1 clearly) |" in table
