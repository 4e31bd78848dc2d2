"""The study of gradient quality: exact gradients, theory against measurement."""

import numpy as np
import pytest
from networks import labels, pixels, residual_network, smooth_network

import pmt
from pmt.datasets import Dataset

torch = pytest.importorskip("torch")

from pmt.baselines.backprop import exact_gradient  # noqa: E402
from pmt_lab.studies.error_theory import (  # noqa: E402
    LayerMoments,
    expected_error,
    layer_moments,
    paper_variance,
    pooled_moments,
)
from pmt_lab.studies.estimators import WORDS, estimator_options  # noqa: E402
from pmt_lab.studies.gradient_quality import study_gradients  # noqa: E402
from pmt_lab.studies.scope_variance import compare_scopes  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_torch_thread")


def arrays_of(model: pmt.Model, count: int) -> tuple[np.ndarray, np.ndarray]:
    return model.prepare(pixels(model, count)), labels(model, count)


def batch_of(model: pmt.Model, count: int) -> Dataset:
    names = tuple(f"class {c}" for c in range(model.classes))
    return Dataset(pixels(model, count), labels(model, count), names, "random")


@pytest.mark.parametrize("layer", [0, 1, 2, 3, 5, 7])
def test_moments_are_those_of_the_exact_gradient(layer):
    model = residual_network()
    images, y = arrays_of(model, 3)
    exact = exact_gradient(model, images, y, layer)
    moments = layer_moments(model, images, y, layer)
    np.testing.assert_allclose(moments.gradient, exact.weights, rtol=1e-4, atol=1e-9)
    squares = (exact.sample_weights.astype(np.float64) ** 2).sum(axis=1)
    np.testing.assert_allclose(moments.weight_squares, squares, rtol=1e-4)
    assert moments.weights == exact.weights.size
    assert moments.coherence == pytest.approx(squares.mean() / (exact.weights**2).sum(), rel=1e-3)


def test_node_moments_are_those_of_the_chain_rule():
    """By definition: the derivative of a weight's gradient by a node's is eff * (x - zero)."""
    model = smooth_network()
    images, y = arrays_of(model, 2)
    moments = layer_moments(model, images, y, 0)
    tensors = model.core.tensors()
    effective = tensors[0]["scale"] * model.core.weight_scales(0) / tensors[1]["scale"]
    for n, image in enumerate(images):
        padded = np.pad(image.astype(np.float64), ((1, 1), (1, 1), (0, 0)))
        patches = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(0, 1))
        norms = (patches**2).sum(axis=(2, 3, 4))  # (height, width)
        expected = (norms[:, :, None] * effective**2).sum()
        assert moments.patch_squares[n] == pytest.approx(expected, rel=1e-5)
    exact = exact_gradient(model, images, y, 0)
    assert moments.nodes == 4 * 4 * 4
    # Weights see the nodes through the patches, so no direction gains more than the patches' norm.
    assert ((exact.sample_weights**2).sum(axis=1) < moments.node_squares * expected * 2).all()


@pytest.mark.parametrize(
    ("layer", "words"),
    [
        ("head", "weight+mu1+clean"),
        ("head", "weight+mu1"),
        ("head", "weight+mu1+shared"),
        ("conv", "node+mu1"),
        ("conv", "node+mu1+clean"),
        ("conv", "pooled+mu1"),
        ("conv", "free_node+mu1"),
    ],
)
@pytest.mark.parametrize("queries", [4, 16])
def test_on_a_smooth_loss_theory_and_measurement_agree(layer, words, queries):
    model = smooth_network()
    study = study_gradients(
        model,
        batch_of(model, 2),
        layers=layer,
        estimators=[words],
        queries=[queries],
        repeats=200,
        threads=1,
        progress=False,
    )
    (row,) = study.rows
    allowed = 4 * row.squared_error_error + 0.05 * row.expected_squared_error
    assert abs(row.squared_error - row.expected_squared_error) < allowed
    assert abs(row.cosine - row.expected_cosine) < 0.06
    assert row.forwards == 2 * queries


@pytest.mark.parametrize("layer", [0, 1, 2, 3, 5])
def test_free_nodes_are_the_nodes_that_no_clamp_holds(layer):
    model = residual_network()
    images, y = arrays_of(model, 3)
    nodes, free = (layer_moments(model, images, y, layer, free=only) for only in (False, True))
    if layer == 3:  # not clamped
        np.testing.assert_array_equal(free.node_squares, nodes.node_squares)
    else:
        assert (free.node_squares < nodes.node_squares).all()
    for name in ("patch_squares", "diagonal", "weight_squares", "gradient"):
        np.testing.assert_array_equal(getattr(free, name), getattr(nodes, name))


def test_the_pooled_gradient_is_that_of_the_core_where_queries_reach_its_dimension():
    """But for rounding, the loss's curvature and the directions' own noise."""
    model = smooth_network()
    images, y = arrays_of(model, 2)
    options = estimator_options("pooled+mu1+antithetic", 4096, 1)
    trainer = pmt._core.Trainer(model.core, options.to_core(), [0], 2, 1)
    estimate, _ = trainer.estimate(images, y, 0, 0)
    pooled = pooled_moments(model, images, y, 0)
    assert pooled.nodes == 4
    error = np.linalg.norm(estimate - pooled.gradient) / np.linalg.norm(pooled.gradient)
    assert error < 0.15  # (2 d - 2) / Q of random signs, and rounding


def test_the_theory_of_pooled_nodes_tells_bias_and_variance_apart():
    model = smooth_network()
    kwargs = {"layers": "conv", "repeats": 2, "threads": 1, "progress": False}
    names = ["node", "pooled", "free_node"]
    rows = study_gradients(model, batch_of(model, 2), estimators=names, queries=[8], **kwargs).rows
    node, pooled, free = rows
    for row in (node, free):
        assert (row.expected_bias, row.limit_cosine) == (0.0, 1.0)
    assert pooled.expected_bias > 1e-3
    assert pooled.limit_cosine < 1.0
    assert free.expected_squared_error == pytest.approx(node.expected_squared_error)
    assert pooled.expected_squared_error - pooled.expected_bias < free.expected_squared_error


def test_model_wise_and_layer_wise_follow_their_formulas():
    model = smooth_network()
    given = {"words": "mu4", "repeats": 100, "threads": 1}
    _, (*rows, together, alone) = compare_scopes(
        model, batch_of(model, 2), queries=32, estimators=("weight", "node", "free_node"), **given
    )
    kinds = [(row["estimator"], row["scope"], row["queries"]) for row in rows]
    assert kinds == [
        ("weight", "model_wise", 32),
        ("weight", "layer_wise", 16),
        ("node", "model_wise", 32),
        ("node", "layer_wise", 16),
    ]
    for row in rows:
        assert row["measured"] == pytest.approx(row["expected"], rel=0.12)
    # No node of this network is at a clamp.
    assert [together["estimator"], alone["scope"]] == ["free_node", "layer_wise"]
    for free, row in zip((together, alone), rows[2:], strict=True):
        assert free["printed"] == row["printed"]
        assert free["measured"] == pytest.approx(free["expected"], rel=0.12)
    # In the node rows the head is in closed form: one layer is perturbed, at half the queries.
    assert rows[3]["expected"] == pytest.approx(rows[2]["expected"] * 31 / 15)
    moments = [layer_moments(model, *arrays_of(model, 2), layer) for layer in (0, 1)]
    squares = sum(layer.squares for layer in moments)
    assert [row["printed"] * squares for row in rows] == pytest.approx(
        [
            paper_variance(moments, 32, model_wise=model_wise, nodes=nodes)
            for nodes in (False, True)
            for model_wise in (True, False)
        ]
    )
    with pytest.raises(ValueError, match="queries=31: must be a multiple of the 2 layers"):
        compare_scopes(model, batch_of(model, 2), queries=31, **given)


WEIGHT = ["weight_perturbation"]


def moments_of(gradient: list[float], others: list[float]) -> LayerMoments:
    """Two images whose gradients are the two lists."""
    both = np.array([gradient, others])
    squares = (both**2).sum(axis=1)
    return LayerMoments(both.mean(axis=0), both.shape[1], 6, squares, squares, squares, squares)


def test_the_formulas_by_hand():
    layer = moments_of([3.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0])
    assert layer.squares == 7.0  # (2, 1, 1, 1)
    assert layer.coherence == pytest.approx(8.0 / 7.0)
    options = estimator_options("weight+clean", 3, 1)
    # (d - 1) / (N Q) * mean(12, 4)
    assert expected_error([layer], 0, options, WEIGHT) == pytest.approx(3 / 6 * 8)
    shared = estimator_options("weight+clean+shared", 3, 1)
    assert expected_error([layer], 0, shared, WEIGHT) == pytest.approx(3 / 3 * 7)
    fewer = estimator_options("weight", 4, 1)  # leave-one-out: one query is the others' mean
    assert expected_error([layer], 0, fewer, WEIGHT) == pytest.approx(3 / 6 * 8)
    both = estimator_options("weight+clean+model_wise", 3, 1)
    # d sum S - own: (4 * 24 - 12 + 4 * 8 - 4) / 2 / (N Q)
    expected = (4 * 24 - 12 + 4 * 8 - 4) / 2 / 6
    assert expected_error([layer, layer], 0, both, 2 * WEIGHT) == pytest.approx(expected)
    assert expected_error([layer], 0, options, ["closed_form"]) == 0.0
    # L identical layers: (L d - 1) S + L V over N Q, with S and V summed over the layers.
    assert paper_variance([layer, layer], 5, model_wise=True) == pytest.approx(
        (7 * 14 + 2 * 2) / 10
    )
    assert paper_variance([layer, layer], 5, model_wise=False) == pytest.approx((6 * 14 + 4) / 10)
    # 6 nodes for 4 weights
    by_nodes = paper_variance([layer, layer], 5, model_wise=False, nodes=True)
    assert by_nodes == pytest.approx((10 * 14 + 4) / 10)


def test_estimators_by_name():
    options = estimator_options("node+mu2+clean+model_wise", 8, 5)
    assert (options.rule, options.mu_weight, options.mu_node) == ("node", 2, 2)
    assert (options.baseline, options.scope, options.queries, options.seed) == (
        "clean",
        "model_wise",
        8,
        5,
    )
    assert not options.train_bias
    options = estimator_options("by_dimension", 8, 5)
    assert (options.rule, options.node_dimension, options.node_ratio) == (
        "by_dimension",
        "input",
        1.0,
    )
    options = estimator_options("free_node+antithetic", 8, 5)
    assert (options.rule, options.nodes, options.pairs) == ("node", "free", "antithetic")
    assert {"weight", "node", "clean", "shared", "model_wise"} <= set(WORDS)
    for name, message in (
        ("mu1", "must be weight, node, free_node, pooled or by_dimension"),
        ("weight+node", "must be weight, node, free_node, pooled or by_dimension"),
        ("node+pooled", "must be weight, node, free_node, pooled or by_dimension"),
        ("weight+magic", "'magic' is none of weight, node"),
        ("weight+mu0", "'mu0' is none of"),
    ):
        with pytest.raises(ValueError, match=message):
            estimator_options(name, 8, 1)


def test_what_was_measured_is_not_measured_again(tmp_path, monkeypatch):
    model = smooth_network()
    data = batch_of(model, 2)
    kwargs = {"layers": "head", "repeats": 3, "out": tmp_path, "threads": 1, "progress": False}
    first = study_gradients(model, data, estimators=["weight"], queries=[2], **kwargs)
    whole = study_gradients(model, data, estimators=["weight"], queries=[2, 4], **kwargs)
    assert whole.rows[0] == first.rows[0]
    monkeypatch.setattr("pmt_lab.studies.gradient_quality._Measurement.rows", None)
    again = study_gradients(model, data, estimators=["weight"], queries=[2, 4], **kwargs)
    assert again.rows == whole.rows
    with pytest.raises(TypeError):  # other images are measured
        study_gradients(model, batch_of(model, 3), estimators=["weight"], queries=[2], **kwargs)
    with pytest.raises(ValueError, match="repeats=1: a standard error needs 2"):
        study_gradients(model, data, **{**kwargs, "repeats": 1})
