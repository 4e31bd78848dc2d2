"""Results of studies as files: written, read, damaged, and never lost."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from study_data import grid_data, missing_run, run_record

import pmt
from pmt_lab.reproduce import STUDIES, reproduce_job, results
from pmt_lab.reproduce.reproduce_job import reproduce


def test_a_result_is_written_and_read(tmp_path):
    data = {"grids": {"g": grid_data([run_record("default", 30)])}, "seconds": 2.0}
    path = results.save(results.record("estimators", "full", data, 9.0), tmp_path / "new")
    found = results.load("estimators", tmp_path / "new")
    assert found["data"] == {"grids": data["grids"]}
    assert (found["study"], found["scale"], found["seconds"]) == ("estimators", "full", 2.0)
    assert found["pmt"] == pmt.__version__
    (line,) = [line for line in path.read_text().splitlines() if '"axes"' in line]
    assert json.loads(line) == data["grids"]["g"]["runs"][0]


def test_a_result_that_is_missing_or_damaged(tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        results.load("estimators", tmp_path)
    assert str(error.value) == (
        f"{tmp_path}/estimators.json: no result of estimators; "
        "`pmt-lab reproduce estimators` makes it"
    )
    (tmp_path / "estimators.json").write_text("{}")
    with pytest.raises(ValueError, match="is not a result of a study; remove the file, and `pmt"):
        results.load("estimators", tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"study": "fgvc-accuracy"}, "is a result of fgvc-accuracy; "),
        ({"data": {}}, "data is damaged; "),
        ({"data": []}, "data [] is damaged; "),
        ({"data": {"grids": []}}, "grids is damaged; "),
        ({"data": {"grids": {"g": {"runs": []}}}}, "grid g is damaged; "),
        ({"data": {"grids": {"g": grid_data([{"axes": {}}])}}}, "run 0 of grid g is damaged; "),
        (
            {"data": {"grids": {"g": grid_data([run_record("default", 7500)])}}},
            "run 0 of grid g is damaged; ",
        ),
        ({"seconds": "x"}, "seconds 'x' is damaged; "),
        ({"scale": "huge"}, "scale 'huge' is damaged; "),
    ],
)
def test_a_damaged_result_is_named_with_what_is_wrong(change, said, tmp_path):
    made = results.record("estimators", "full", {"grids": {}}, 1.0)
    path = results.save({**made, "study": "estimators"}, tmp_path)
    path.write_text(json.dumps({**made, **change}))
    with pytest.raises(ValueError, match=r"damaged|empty|is a result") as error:
        results.load("estimators", tmp_path)
    remedy = "remove the file, and `pmt-lab reproduce` makes it again"
    assert str(error.value) == f"{path}: {said}{remedy}"


def test_a_result_of_another_scale_or_budget_is_not_replaced(tmp_path, monkeypatch):
    runs = [run_record("default", 30, seed=seed) for seed in (1, 2)]
    full = results.record("estimators", "full", {"grids": {"g": grid_data(runs)}}, 1.0)
    path = results.save(full, tmp_path)
    before = path.read_bytes()
    made = {"grids": {"g": {**grid_data(runs[:1]), "macs": 10**12}}}
    asked = []
    study = replace(STUDIES["estimators"], measure=lambda *given: asked.append(given) or made)
    monkeypatch.setitem(STUDIES, "estimators", study)
    given = {"results": tmp_path, "out": tmp_path / "runs"}

    remedy = "give --results another folder, or --force to replace the file"
    with pytest.raises(ValueError, match="of full scale") as error:
        reproduce("estimators", "small", **given)
    assert str(error.value) == f"{path}: is of full scale, the new one small; {remedy}"
    assert asked == []  # before anything is done
    with pytest.raises(ValueError, match="another model, protocol or budget") as error:
        reproduce("estimators", collect=True, **given)
    assert str(error.value) == (
        f"{path}: its runs of g have another model, protocol or budget; {remedy}"
    )
    for part in ({"collect": True}, {"shard": (1, 2)}):
        with pytest.raises(ValueError, match=r"^force replaces a whole result by what is measured"):
            reproduce("estimators", force=True, **part, **given)
    assert path.read_bytes() == before
    reproduce("estimators", force=True, **given)
    assert len(results.load("estimators", tmp_path)["data"]["grids"]["g"]["runs"]) == 1


def test_runs_that_a_result_lacks_are_those_of_the_earlier_one(tmp_path, monkeypatch):
    runs = [run_record("default", 30, seed=seed) for seed in (1, 2, 3)]
    grids = {"g": grid_data(runs[:2]), "other": grid_data(runs[:1])}
    first = results.record("estimators", "full", {"grids": grids}, 1.0)
    path = results.save({**first, "date": "2020-01-02", "commit": "abc"}, tmp_path)
    made = {"grids": {"g": grid_data(runs[1:], [missing_run("default", seed=1)])}}
    study = replace(STUDIES["estimators"], measure=lambda *given: made)
    monkeypatch.setitem(STUDIES, "estimators", study)
    reproduce("estimators", results=tmp_path, out=tmp_path / "runs")
    kept = results.load("estimators", tmp_path)
    source = {"commit": "abc", "date": "2020-01-02", "machine": first["machine"]}
    assert kept["data"]["grids"]["g"]["runs"] == [*runs[1:], {**source, **runs[0]}]
    assert kept["data"]["grids"]["g"]["missing"] == []
    assert kept["data"]["grids"]["other"]["runs"] == [{**source, **runs[0]}]
    before = path.read_bytes()
    reproduce("estimators", results=tmp_path, out=tmp_path / "runs")
    assert path.read_bytes() == before  # the same runs, so the file keeps its date


def test_shards_that_end_at_once_lose_no_run(tmp_path, monkeypatch):
    def shard(part, folder):
        given = {"out": tmp_path / f"out{part}", "shard": (part, 2), "jobs": 1}
        return reproduce("estimators", "small", results=folder, **given)

    shard(1, tmp_path / "first")
    (first,) = (tmp_path / "first").iterdir()
    both = tmp_path / "both"
    measured = reproduce_job._measured

    def meanwhile(*given):
        found = measured(*given)
        both.mkdir()  # the other shard writes its result while this one works
        (both / first.name).write_bytes(first.read_bytes())
        return found

    monkeypatch.setattr(reproduce_job, "_measured", meanwhile)
    shard(2, both)
    (grid,) = results.load("estimators", both)["data"]["grids"].values()
    assert grid["missing"] == []
    assert not list(both.glob("*.lock"))
