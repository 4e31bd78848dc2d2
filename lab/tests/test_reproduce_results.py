"""Results of studies as files: measured, written, read, damaged, joined, and never lost."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from study_data import grid_data, missing_run, run_record

import pmt
from pmt_lab.reproduce import STUDIES, fgvc_accuracy, results
from pmt_lab.reproduce.reproduce_job import reproduce
from pmt_lab.reproduce.study import Context


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
    results.save({**results.record("x", "full", {}, 1.0), "study": "estimators"}, tmp_path)
    (tmp_path / "estimators.json").rename(tmp_path / "fgvc-accuracy.json")
    with pytest.raises(ValueError, match="is a result of estimators; remove the file, and `pmt"):
        results.load("fgvc-accuracy", tmp_path)


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
    with pytest.raises(ValueError, match=r"^scale='smal' must be 'small' or 'full'$"):
        reproduce("estimators", "smal", **given)
    with pytest.raises(ValueError, match="of full scale") as error:
        reproduce("estimators", "small", **given)
    assert str(error.value) == f"{path}: is of full scale, the new one small; {remedy}"
    assert asked == []  # before anything is done
    with pytest.raises(ValueError, match="another model, protocol or budget") as error:
        reproduce("estimators", collect=True, **given)
    assert str(error.value) == (
        f"{path}: its runs of g have another model, protocol or budget; {remedy}"
    )
    with pytest.raises(ValueError, match=r"^force replaces a whole result by what is measured"):
        reproduce("estimators", force=True, collect=True, **given)
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
    made["grids"]["g"]["failed"] = {"default": "no memory"}
    done = reproduce("estimators", results=tmp_path, out=tmp_path / "runs")
    assert path.read_bytes() == before  # the same runs, so the file keeps its date
    assert done.failed == {"default": "no memory"}


def test_results_that_end_at_once_lose_no_run(tmp_path, monkeypatch):
    runs = [run_record("default", 30, seed=seed) for seed in (1, 2)]
    missing = [missing_run("default", seed=seed) for seed in (1, 2)]
    first = {"grids": {"g": grid_data(runs[:1], missing[1:])}}

    def measured(*given):
        # Another process writes its result while this one works.
        results.save(results.record("estimators", "full", first, 1.0), tmp_path)
        return {"grids": {"g": grid_data(runs[1:], missing[:1])}}

    monkeypatch.setitem(STUDIES, "estimators", replace(STUDIES["estimators"], measure=measured))
    reproduce("estimators", results=tmp_path, out=tmp_path / "runs")
    (grid,) = results.load("estimators", tmp_path)["data"]["grids"].values()
    assert (len(grid["runs"]), grid["missing"]) == (2, [])
    assert not list(tmp_path.glob("*.lock"))


def test_a_measurement_that_could_not_be_made_is_not_lost(tmp_path, monkeypatch):
    def made(rate, **more):
        run = {**run_record("adam", 30), "options": {"learning_rate": rate}}
        data = {"grids": {"g": grid_data([run])}, "seconds": 1.0, **more}
        study = replace(STUDIES["estimators"], measure=lambda *given: data)
        monkeypatch.setitem(STUDIES, "estimators", study)
        return reproduce("estimators", results=tmp_path, out=tmp_path / "runs", collect=True)

    made(0.5, counted=7)
    made(0.25, counted=7)  # a run with other options replaces the one at its place
    (run,) = results.load("estimators", tmp_path)["data"]["grids"]["g"]["runs"]
    assert run["options"] == {"learning_rate": 0.25}
    with pytest.raises(ValueError, match="holds counted, which could not be measured here"):
        made(0.25, counted=None)
    made(0.25, counted=7, drawn=3)
    assert results.load("estimators", tmp_path)["data"]["drawn"] == 3


def test_fine_grained_data_that_is_not_at_hand_keeps_its_classes(tmp_path, monkeypatch):
    study = STUDIES["fgvc-accuracy"]
    with pytest.raises(FileNotFoundError, match=r"^no fine-grained data set is found; `pmt down"):
        study.measure("full", Context(tmp_path, data=tmp_path))
    (tmp_path / "food10").mkdir()
    monkeypatch.setattr(fgvc_accuracy, "_on", lambda *given: None)
    monkeypatch.setattr(fgvc_accuracy, "measure_grids", lambda grids, context: {"grids": grids})
    monkeypatch.setattr(
        fgvc_accuracy, "image_files", lambda *given, **more: SimpleNamespace(class_names="ab")
    )
    context = Context(tmp_path, data=tmp_path, earlier={"classes": {"cars": 196}})
    data = study.measure("full", context)
    assert data["classes"] == {"cars": 196, "food": 2}
    kinds = ("", "_backprop", "_released", "_released_head")
    assert set(data["grids"]) == {f"fgvc{kind}_food" for kind in kinds}


def test_a_study_that_had_nothing_left_keeps_its_origin(tmp_path):
    first = reproduce("memory-formulas", "small", out=tmp_path).result
    path = results.path_of("memory-formulas", tmp_path / "small" / "memory-formulas")
    path.write_text(path.read_text().replace(first["date"], "2020-01-02"))
    assert reproduce("memory-formulas", "small", out=tmp_path).result["date"] == "2020-01-02"


def test_force_replaces_a_damaged_file(tmp_path):
    path = results.path_of("memory-formulas", tmp_path)
    path.write_text('{"study": ')
    given = {"out": tmp_path / "runs", "results": tmp_path, "force": True}
    reproduce("memory-formulas", "small", **given)
    assert results.load("memory-formulas", tmp_path)["scale"] == "small"
