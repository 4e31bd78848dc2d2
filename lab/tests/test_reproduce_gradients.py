"""Studies of gradient estimates: small ones measured, and what their figures are taken to say."""

import json

import numpy as np
import pytest

from pmt_lab.reproduce import gradient_cosine, results, scopes_cosine, variance_formulas
from pmt_lab.reproduce.cosines import difference, gradient_batch, mean_cosine, turns, wins
from pmt_lab.reproduce.study import Context, published


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
