"""A study as a job: arguments, what is kept of earlier results, files that are written."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from study_data import grid_data, run_record

from pmt_lab.reproduce import STUDIES, fgvc_accuracy, results
from pmt_lab.reproduce.page import write_page
from pmt_lab.reproduce.reproduce_job import reproduce
from pmt_lab.reproduce.stored import stored
from pmt_lab.reproduce.study import Context


def test_a_run_with_other_options_replaces_the_one_at_its_place(tmp_path, monkeypatch):
    def result(rate, **more):
        run = {**run_record("adam", 30), "options": {"learning_rate": rate}}
        return {"grids": {"g": grid_data([run])}, "seconds": 1.0, **more}

    made = {"data": result(0.5, counted=7)}
    measured = replace(STUDIES["estimators"], measure=lambda *given: dict(made["data"]))
    monkeypatch.setitem(STUDIES, "estimators", measured)
    given = {"results": tmp_path, "out": tmp_path / "runs", "collect": True}
    reproduce("estimators", **given)
    path = results.path_of("estimators", tmp_path)
    first = path.read_bytes()

    reproduce("estimators", **given)
    assert path.read_bytes() == first  # the same runs, so the file keeps its date
    made["data"] = result(0.25, counted=7)
    reproduce("estimators", **given)
    (run,) = results.load("estimators", tmp_path)["data"]["grids"]["g"]["runs"]
    assert run["options"] == {"learning_rate": 0.25}

    before = path.read_bytes()
    made["data"] = result(0.25, counted=None)
    with pytest.raises(ValueError, match="holds counted, which could not be measured here"):
        reproduce("estimators", **given)
    assert path.read_bytes() == before
    made["data"] = result(0.25, counted=7, drawn=3)
    reproduce("estimators", **given)
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
    assert set(data["grids"]) == {"fgvc_food", "fgvc_backprop_food"}


def test_a_study_that_had_nothing_left_keeps_its_origin(tmp_path):
    first = reproduce("memory-formulas", "small", out=tmp_path).result
    path = results.path_of("memory-formulas", tmp_path / "small" / "memory-formulas")
    path.write_text(path.read_text().replace(first["date"], "2020-01-02"))
    assert reproduce("memory-formulas", "small", out=tmp_path).result["date"] == "2020-01-02"


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"scale": "smal"}, ValueError, "scale='smal' must be 'small' or 'full'"),
        ({"jobs": "2"}, TypeError, "jobs='2' must be an integer"),
        ({"jobs": -1}, ValueError, "jobs=-1 must be 0 (one for each CPU) or more"),
        ({"shard": (1,)}, TypeError, "shard=(1,) must be (I, N), the I-th of N parts"),
        ({"shard": (0, 1)}, ValueError, "shard=(0, 1) must be (I, N) with I from 1 to N"),
        ({"results": 3}, TypeError, "results=3 must be the path of a folder"),
        ({"data": "/nope"}, FileNotFoundError, "data='/nope': there is no such folder"),
        ({"study": 3}, TypeError, "study=3 must be the name of a study; there are memory-overview"),
    ],
)
def test_what_is_given_is_checked(given, kind, message):
    with pytest.raises(kind, match="^" + re.escape(message)):
        reproduce(**{"study": "estimators", **given})


def test_a_file_is_no_folder_of_results(tmp_path):
    file = tmp_path / "file"
    file.touch()
    message = f"results={str(file)!r} must be a folder, and is a file"
    with pytest.raises(NotADirectoryError, match=re.escape(message)):
        reproduce("estimators", results=file)
    with pytest.raises(NotADirectoryError, match="must be a folder, and is a file"):
        stored("estimators", file)


def test_force_replaces_a_damaged_file(tmp_path):
    path = results.path_of("memory-formulas", tmp_path)
    path.write_text('{"study": ')
    given = {"out": tmp_path / "runs", "results": tmp_path, "force": True}
    reproduce("memory-formulas", "small", **given)
    assert results.load("memory-formulas", tmp_path)["scale"] == "small"


def test_the_page_keeps_the_line_ends_of_a_file(tmp_path):
    results.save(results.record("estimators", "full", {"grids": {}}, 1.0), tmp_path)
    file = tmp_path / "x.md"
    file.write_bytes(b"before\r\n<!-- results -->\r\nold\r\n<!-- end of results -->\r\nbehind")
    write_page(tmp_path, file)
    text = file.read_bytes()
    assert text.startswith(b"before\r\n<!-- results -->\r\n\r\n| in the paper |")
    assert text.endswith(b"\r\n\r\n<!-- end of results -->\r\nbehind")
    assert text.count(b"\n") == text.count(b"\r\n")
    file.write_bytes(b"\xff")
    with pytest.raises(ValueError, match=r"x\.md: is not UTF-8 text; give a Markdown file"):
        write_page(tmp_path, file)
