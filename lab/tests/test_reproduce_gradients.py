"""Studies of gradient estimates: small ones measured, and what their figures are taken to say."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pmt_lab.reproduce import gradient_cosine, scopes_cosine, variance_formulas
from pmt_lab.reproduce.cosines import difference, gradient_batch, mean_cosine, turns, wins
from pmt_lab.reproduce.study import Context, published


def rows_of(study, data):
    return list(study.compare(data, published(study.name)))


def short(study, data):
    """Return the rows in short: subject, ours, what the paper shows, verdict."""
    return [(r.what, round(r.ours, 3), r.theirs, r.verdict) for r in rows_of(study, data)]


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


def test_the_claims_of_figure_4():
    node = [0.05, 0.01, 0.05, 0.2, 0.3, 0.2]
    data = cosines(
        {
            "weight+model_wise+mu1+clean": [0.3, 0.2, 0.1, 0.05, 0.02, 0.01],
            "node+model_wise+mu1+clean": node,
            "weight+mu1+clean": [0.4] * 6,
            "node+mu1+clean": [0.1, 0.12, 0.14, 0.16, 0.18, 0.2],
            "weight": [0.4] * 6,
            "node": [0.3] * 6,
            "pooled": [0.5] * 6,
        },
        [10, 10, 10, 90, 90, 90],
        [50] * 6,
    )
    assert short(gradient_cosine.STUDY, data) == [
        ("layers of the first half with fewer weights than nodes", 100.0, "most", "reproduced"),
        ("layers of the second half with fewer nodes than weights", 100.0, "most", "reproduced"),
        ("layers where weight perturbation is better, model-wise", 3, "some", "reproduced"),
        ("layers where node perturbation is better, model-wise", 3, "some", "reproduced"),
        ("node minus weight, layers with fewer nodes, model-wise", 0.207, "above 0", "reproduced"),
        ("weight minus node, layers with fewer weights, model-wise", 0.163, "above 0",
         "reproduced"),
        ("layers where weight perturbation is better, layer-wise", 6, "some", "reproduced"),
        ("layers where node perturbation is better, layer-wise", 0, "some", "not reproduced"),
        ("node minus weight, layers with fewer nodes, layer-wise", -0.22, "above 0",
         "not reproduced"),
        ("weight minus node, layers with fewer weights, layer-wise", 0.28, "above 0",
         "reproduced"),
        ("inner layers where node perturbation turns up or down, model-wise", 50.0, "a zigzag",
         "reproduced"),
        ("the same, layer-wise", 0.0, None, "not published"),
        ("weight, layer-wise minus model-wise, at the same queries", 0.287, None, "not published"),
        ("node, layer-wise minus model-wise, at the same queries", 0.015, None, "not published"),
        ("mean over layers, weight, layer-wise, default's mu", 0.4, None, "not published"),
        ("mean over layers, node, layer-wise, default's mu", 0.3, None, "not published"),
        ("mean over layers, one sign per channel, layer-wise", 0.5, None, "not published"),
    ]  # fmt: skip
    data["estimators"]["node+model_wise+mu1+clean"]["cosine"] = [0.0] * 6
    said = {row.what: row for row in rows_of(gradient_cosine.STUDY, data)}
    none = said["layers where node perturbation is better, model-wise"]
    assert (none.ours, none.verdict) == (0, "not reproduced")
    assert none.why == (
        "with all layers at once the signal is lost: layer by layer nodes have 0.150 with the same "
        "mu and baseline, and 0.300 with the default's"
    )

    assert said["the same, layer-wise"].why == (
        "nodes alone have 0.180 in layers with fewer nodes than weights and 0.120 in the others, "
        "which take turns"
    )


def test_the_claims_of_figure_5():
    scopes = {"layer_wise": 0.1, "model_wise": 0.0}
    kinds = {"weight": [0.2, 0.1], "node": [0.1, 0.2], "by_dimension": [0.2, 0.2]}
    data = cosines(
        {
            f"{kind}+{scope}+{words}": [value + more for value in values]
            for words in ("mu1+clean", "mu4")
            for kind, values in kinds.items()
            for scope, more in scopes.items()
        }
        | {"pooled": [0.5, 0.5]},
        [10, 90],
        [50, 50],
    )
    study = scopes_cosine.STUDY
    for setting in ("the paper's mu (1), clean baseline", "mu 4"):
        rows = [row for row in short(study, data) if row[0].endswith(setting)]
        assert rows == [
            (f"weight, layer-wise minus model-wise, {setting}", 0.1, "above 0", "reproduced"),
            (f"node, layer-wise minus model-wise, {setting}", 0.1, "above 0", "reproduced"),
            (f"mixture, layer-wise minus model-wise, {setting}", 0.1, "above 0", "reproduced"),
            (f"mixture minus weight alone, the better one, layer-wise, {setting}", 0.05,
             "above 0", "reproduced"),
            (f"layers in which the mixture takes the worse of both, {setting}", 0, "0",
             "reproduced"),
        ]  # fmt: skip
    said = {row.what: row.why for row in rows_of(study, data)}
    assert said["weight, layer-wise minus model-wise, mu 4"] == (
        "better in 2 of 2 layers, worse in 0; layer-wise has 0.250 of expected 0.250, model-wise "
        "0.150 of expected 0.150"
    )
    assert said["mixture minus weight alone, the better one, layer-wise, mu 4"] == (
        "where it takes nodes, in 1 layer, these have 0.300 and weights 0.200"
    )
    data["estimators"]["by_dimension+layer_wise+mu4"]["perturbed"] = ["weight", "weight"]
    *_, mixture, wrong, _ = rows_of(study, data)
    assert mixture.why == "it takes weights in every layer"
    assert (wrong.ours, wrong.verdict, wrong.why) == (1, "not reproduced", "layer1")


def test_formulas_of_variance_are_told_where_they_hold():
    row = {
        "estimator": "weight",
        "scope": "layer_wise",
        "queries": 4,
        "measured": 30.0,
        "measured_error": 1.0,
        "expected": 31.2,
        "printed": 27.0,
    }
    together = {**row, "scope": "model_wise", "measured": 37.5, "expected": 24.0}
    both = (row, together)
    node = [{**one, "estimator": "node", "measured": 67.5 - one["measured"]} for one in both]
    case = {"images": 1, "words": "mu4", "layers": 2, "queries": 8, "scatter": 0.0}
    many = {**case, "images": 4, "scatter": 3.0, "words": "mu1+clean"}
    wrong = [{**one, "printed": 9.0} for one in (row, together, *node)]
    cases = [{**case, "rows": [row, together, *node]}, {**many, "rows": wrong}]
    data = {"network": "n", "repeats": 8, "cases": cases}
    rows, paper = rows_of(variance_formulas.STUDY, data), "the paper's mu (1), clean baseline"
    assert [(r.what, round(r.ours, 2), r.theirs, r.verdict) for r in rows] == [
        ("weight, layer-wise, 1 image, mu 4", 30.0, 27.0, "reproduced"),
        ("weight, model-wise, 1 image, mu 4", 37.5, 27.0, "not reproduced"),
        ("node, layer-wise, 1 image, mu 4", 37.5, 27.0, "not reproduced"),
        ("node, model-wise, 1 image, mu 4", 30.0, 27.0, "reproduced"),
        (f"weight, layer-wise, 4 images, {paper}", 30.0, 9.0, "not reproduced"),
        (f"weight, model-wise, 4 images, {paper}", 37.5, 9.0, "not reproduced"),
        (f"node, layer-wise, 4 images, {paper}", 37.5, 9.0, "not reproduced"),
        (f"node, model-wise, 4 images, {paper}", 30.0, 9.0, "not reproduced"),
        ("weight, layer-wise over model-wise, 1 image, mu 4", 0.8, "just below 1",
         "reproduced"),
        ("node, layer-wise over model-wise, 1 image, mu 4", 1.25, "just below 1",
         "not reproduced"),
        (f"weight, layer-wise over model-wise, 4 images, {paper}", 0.8, "just below 1",
         "reproduced"),
        (f"node, layer-wise over model-wise, 4 images, {paper}", 1.25, "just below 1",
         "not reproduced"),
    ]  # fmt: skip
    exact = "exact for a loss that is linear in the perturbation, without rounding and clamps"
    assert rows[0].interval == pytest.approx((27.6354, 32.3646), abs=1e-3)
    assert rows[0].why == (
        f"{exact}: 31; a layer's own mean as baseline costs one of its few queries"
    )
    assert rows[4].why == (
        f"{exact}: 31; V, here 3.0 S, stands in it without the dimension; with mu 1, "
        "rounding comes on top"
    )
    assert rows[6].why == (
        f"{exact}: 31; an error of a node's gradient reaches the weights times the "
        "inputs there; clamps, which no formula has, hold nodes back; with mu 1, rounding "
        "comes on top"
    )
    assert rows[8].why == (f"{exact}: 1.30; layers differ, and each has few queries of its own")
    together["measured"] = 38.0
    (far,) = [r for r in rows_of(variance_formulas.STUDY, data) if r.what == rows[8].what]
    assert (round(far.ours, 3), far.verdict) == (0.789, "not reproduced")


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
    assert all(np.isfinite(row.ours) for row in rows)
    monkeypatch.setattr("pmt_lab.studies.gradient_quality._Measurement.rows", None)
    monkeypatch.setattr(variance_formulas, "compare_scopes", None)
    assert study.measure("small", Context(tmp_path, jobs=1)) == data
    given = plt.subplots()[1]
    assert study.plot(data, ax=given) is given
    assert study.plot(data).figure is not given.figure
    plt.close("all")
