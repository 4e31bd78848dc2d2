"""Studies of costs and gradients; results as files: written, read, damaged, joined, never lost."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from firmware_tools import EMULATOR, need_firmware_tools
from study_data import grid_data, missing_run, run_record

import pmt
from pmt_lab.reproduce import (
    STUDIES,
    costs,
    fgvc_accuracy,
    gradient_cosine,
    results,
    scopes_cosine,
    variance_formulas,
)
from pmt_lab.reproduce.cosines import difference, gradient_batch, mean_cosine, turns, wins
from pmt_lab.reproduce.reproduce_job import reproduce
from pmt_lab.reproduce.study import Context, published


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
    forwards = ("", "_automatic", "_late_layers", "_cross_fit")
    kinds = (*forwards, "_backprop", "_released", "_released_head")
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


NAMES = ("memory-overview", "full-model-cost", "sparse-cost", "memory-formulas")
# Figures that other programs or sweeps make.
ELSEWHERE = ("torch_process_bytes", "instructions", "grids", "seconds")
COUNTED = {
    "latency": {"clock_mhz": 280.0},
    "instructions": [
        {
            "kernels": "arm_dsp",
            "forward_instructions": 37_072_703,
            "step": {"forwards": {"instructions": 12_000_000_000}, "update": {"instructions": 7}},
        }
    ],
}


def counted(data):
    """Return data as a result file gives it back, without what is measured elsewhere."""
    known = json.loads(json.dumps(data, allow_nan=False))
    return {name: value for name, value in known.items() if name not in ELSEWHERE}


@pytest.mark.parametrize("name", NAMES)
def test_costs_are_those_of_the_versioned_result(name, tmp_path):
    data = STUDIES[name].measure("small", Context(tmp_path / name, collect=True))
    assert counted(data) == counted(results.load(name)["data"])


def test_without_tools_no_instruction_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda tool: None)
    study = STUDIES["full-model-cost"]
    data = study.measure("full", Context(tmp_path))
    assert data["instructions"] is None
    rows = {row.what: row for row in study.compare(data, published(study.name))}
    for name in ("BP-free latency", "BP-free end-to-end time", "BP-free step over an inference"):
        assert (rows[name].ours, rows[name].verdict) == (None, "not run")
        assert rows[name].why.endswith("needs arm-none-eabi-g++ and qemu-system-arm")


def test_counted_instructions_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda tool: tool)
    counts = []

    def run(command, **given):
        counts.append(command[-3])
        return SimpleNamespace(returncode=0, stdout=json.dumps(COUNTED))

    monkeypatch.setattr(costs.subprocess, "run", run)

    def count(target):
        return costs._instructions("cifar10_mcunet", "B3", 50, target, Context(tmp_path))

    first = count("stm32f746g-disco")
    assert (first["step"], first["megahertz"]) == (12_000_000_007, 280.0)
    assert count("stm32f746g-disco") == first
    assert counts == ["stm32f746g-disco"]
    count("stm32h7b3i-dk")  # what is kept is of another board
    assert counts == ["stm32f746g-disco", "stm32h7b3i-dk"]


def test_instructions_are_those_of_pmt_profile(tmp_path):
    need_firmware_tools("make", EMULATOR)
    told = []
    context = Context(tmp_path, tell=told.append)
    given = ("fashion_mnist_dscnn", "B4", 2, "stm32f746g-disco", context)
    found = costs._instructions(*given)
    assert told == [
        "pmt profile fashion_mnist_dscnn --instructions --method paper --layers B4 --queries 2 "
        "--target stm32f746g-disco"
    ]
    assert (found["kernels"], found["megahertz"]) == ("arm_dsp", 216.0)
    assert 2e6 < found["forward"] < found["step"] < 40e6


def rows_of(study, data):
    return {row.what: row for row in study.compare(data, published(study.name))}


def kept(study):
    """Return the versioned figures, whose rows the page shows."""
    return results.load(study.name)["data"]


def cosines(estimators, weights, nodes):
    """Return data of five repeats: each estimator's cosines, with errors of 0.001."""
    sizes = zip(weights, nodes, strict=True)
    perturbed = ["weight" if few else "node" for few in (w < n for w, n in sizes)]
    names = [f"layer{k}" for k in range(len(weights))]
    made = {
        name: {
            "queries": 4,
            "perturbed": perturbed,
            "cosine": values,
            "error": [0.001] * len(values),
            "expected": values,
        }
        for name, values in estimators.items()
    }
    return {"repeats": 5, "layers": names, "weights": weights, "nodes": nodes, "estimators": made}


def test_figures_of_cosines_by_hand():
    data = cosines({"a": [0.1, 0.3, 0.1, 0.3], "b": [0.2, 0.2, 0.1, 0.299]}, [1] * 4, [1] * 4)
    mean, (low, high) = mean_cosine(data, "a")
    # Student's t of 4 layers times 4 degrees of freedom is 2.1199; the error is 0.001 / 2.
    assert (mean, low, high) == pytest.approx((0.2, 0.2 - 0.00106, 0.2 + 0.00106), abs=1e-5)
    mean, (low, high) = difference(data, "a", "b", [1, 3])
    # 16 degrees of freedom: 2.1199 times the root of 4e-6 over 2.
    assert (mean, high - mean) == pytest.approx((0.0505, 0.00212), abs=1e-5)
    assert (wins(data, "a", "b"), wins(data, "b", "a")) == ([1], [0])
    assert turns(data, "a") == 1.0
    assert turns(data, "b") == 0.5


def test_the_claims_of_figure_4_turn_with_the_cosines():
    study = gradient_cosine.STUDY
    data = kept(study)
    node = data["estimators"]["node+model_wise+mu1+clean"]
    fewer = [n < w for n, w in zip(data["nodes"], data["weights"], strict=True)]
    node["cosine"] = [0.9 * few for few in fewer]
    said = rows_of(study, data)
    for what in (
        "layers where node perturbation is better",
        "node minus weight, layers with fewer nodes",
    ):
        assert said[f"{what}, model-wise"].verdict == "reproduced"
    node["cosine"] = [0.0 for few in fewer]
    none = rows_of(study, data)["layers where node perturbation is better, model-wise"]
    assert (none.ours, none.verdict) == (0, "not reproduced")
    assert none.why.startswith("with all layers at once the signal is lost: layer by layer nodes")


def test_the_claims_of_figure_5_turn_with_the_cosines():
    study = scopes_cosine.STUDY
    data = kept(study)
    found, count = data["estimators"], len(data["layers"])
    for kind, cosine in (("weight", 0.2), ("node", 0.1), ("by_dimension", 0.3)):
        for scope, value in (("layer_wise", cosine), ("model_wise", 0.0)):
            sure = {"cosine": [value] * count, "error": [0.001] * count}
            found[f"{kind}+{scope}+mu4"] |= sure
    found["by_dimension+layer_wise+mu4"]["perturbed"] = ["weight"] * count
    said = rows_of(study, data)
    for kind in ("weight", "node", "mixture"):
        assert said[f"{kind}, layer-wise minus model-wise, mu 4"].verdict == "reproduced"
    mixture = said["mixture minus weight alone, the better one, layer-wise, mu 4"]
    assert (mixture.verdict, mixture.why) == ("reproduced", "it takes weights in every layer")
    worse = said["layers in which the mixture takes the worse of both, mu 4"]
    assert (worse.ours, worse.verdict) == (0, "reproduced")
    found["by_dimension+layer_wise+mu4"]["perturbed"] = ["node"] + ["weight"] * (count - 1)
    worse = rows_of(study, data)["layers in which the mixture takes the worse of both, mu 4"]
    assert (worse.ours, worse.verdict, worse.why) == (1, "not reproduced", data["layers"][0])


def test_formulas_of_variance_are_told_where_they_hold():
    study = variance_formulas.STUDY
    data = kept(study)
    rows = data["cases"][0]["rows"]
    by = {(row["estimator"], row["scope"]): row for row in rows}
    alone, together = by["weight", "layer_wise"], by["weight", "model_wise"]
    alone |= {"measured": 30.0, "measured_error": 1.0, "printed": 27.0, "expected": 31.2}
    together |= {"measured": 37.5, "measured_error": 1.0, "printed": 9.0, "expected": 24.0}
    said = rows_of(study, data)
    row = said["weight, layer-wise, 1 image, mu 4"]
    assert (row.ours, row.theirs, row.verdict) == (30.0, 27.0, "reproduced")
    assert row.interval == pytest.approx((27.6354, 32.3646), abs=1e-3)  # Student's t of 7: 2.3646
    assert row.why == (
        "exact for a loss that is linear in the perturbation, without rounding and clamps: 31; a "
        "layer's own mean as baseline costs one of its few queries"
    )
    assert said["weight, model-wise, 1 image, mu 4"].verdict == "not reproduced"
    ratio = said["weight, layer-wise over model-wise, 1 image, mu 4"]
    assert (ratio.ours, ratio.verdict) == (0.8, "reproduced")
    together["measured"] = 38.0
    ratio = rows_of(study, data)["weight, layer-wise over model-wise, 1 image, mu 4"]
    assert ratio.verdict == "not reproduced"


def test_full_scale_needs_cifar10(tmp_path):
    for module in (gradient_cosine, scopes_cosine, variance_formulas):
        with pytest.raises(FileNotFoundError, match="cifar-10-batches-bin is not in --data"):
            module.STUDY.measure("full", Context(tmp_path, data=tmp_path))


def test_the_batch_is_balanced_and_leaves_out_the_head(tmp_path):
    batch = gradient_batch("small", Context(tmp_path), 10)
    assert sorted(np.asarray(batch.images.labels)) == list(range(10))
    assert batch.source == "Fashion-MNIST, gaussian_noise severity 5"
    assert batch.convolutions == (
        "conv1,depthwise1,pointwise1,depthwise2,pointwise2,expand3,depthwise3,project3,depthwise4,"
        "pointwise4"
    )


@pytest.mark.parametrize("module", [gradient_cosine, scopes_cosine, variance_formulas])
def test_small_studies_run_resume_and_draw(module, tmp_path, monkeypatch):
    pytest.importorskip("torch")
    plt = pytest.importorskip("matplotlib.pyplot")
    study = module.STUDY
    data = study.measure("small", Context(tmp_path, jobs=1))
    assert data["network"] == "fashion_mnist_dscnn"
    rows = rows_of(study, json.loads(json.dumps(data, allow_nan=False)))
    assert all(np.isfinite(row.ours) for row in rows.values())
    monkeypatch.setattr("pmt_lab.studies.gradient_quality._Measurement.rows", None)
    monkeypatch.setattr(variance_formulas, "compare_scopes", None)
    assert study.measure("small", Context(tmp_path, jobs=1)) == data
    given = plt.subplots()[1]
    assert study.plot(data, ax=given) is given
    assert study.plot(data).figure is not given.figure
