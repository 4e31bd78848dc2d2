"""Tables of a study of gradient estimates, with literal figures."""

from __future__ import annotations

from dataclasses import replace

from pmt_lab.studies.gradient_quality import Quality
from pmt_lab.studies.gradient_tables import estimator_table, layer_table, quality_table, scope_table
from pmt_lab.studies.scope_variance import ScopeVariance

CONV = Quality(
    layer="conv1",
    estimator="weight+mu4",
    kind="weight_perturbation",
    queries=16,
    weights=90,
    nodes=640,
    cosine=0.5,
    cosine_error=0.02,
    squared_error=2.0,
    squared_error_error=0.1,
    expected_cosine=0.6,
    expected_squared_error=1.0,
    coherence=3.0,
    repeats=4,
    forwards=128,
    macs=1000,
)
POOLED = replace(
    CONV, estimator="pooled", kind="pooled_perturbation", expected_bias=0.25, limit_cosine=0.87
)
ROWS = (
    replace(CONV, queries=4, cosine=0.1),
    CONV,
    replace(CONV, layer="conv2", cosine=0.3, squared_error=8.0),
    replace(CONV, layer="head", cosine=0.2),
    replace(POOLED, layer="head", kind="closed_form", cosine=1.0, squared_error=0.0),
    POOLED,
)


def test_means_leave_out_closed_forms_and_fewer_queries():
    assert estimator_table(ROWS) == (
        "estimator   queries  cosine  expected  error / expected\n"
        "weight+mu4       16   0.400     0.600              4.00\n"
        "pooled           16   0.500     0.600              2.00"
    )


def test_an_error_of_zero_has_no_ratio():
    exact = replace(CONV, squared_error=0.0, expected_squared_error=0.0)
    assert estimator_table([exact]).splitlines()[1] == "weight+mu4       16   0.500     0.600"


def test_layers_show_each_estimator_and_the_limit_of_a_biased_one():
    assert layer_table(ROWS) == (
        "layer  weight+mu4        pooled\nconv1       0.500  0.500 (0.87)\nconv2       0.300"
    )


def test_every_figure_has_its_line():
    lines = quality_table(ROWS).splitlines()
    assert len(lines) == 7
    assert lines[0] == (
        "layer  estimator   queries         cosine  expected  squared error  expected   limit  bias"
    )
    assert lines[6] == (
        "conv1  pooled           16  0.500 ± 0.020     0.600        2 ± 0.1          1  0.870  0.25"
    )


def test_scopes():
    rows = [
        ScopeVariance("weight", "model_wise", 44, 353.2, 14.1, 359.0, 87.0),
        ScopeVariance("node", "layer_wise", 4, 2876.0, 720.0, 24910.0, None),
    ]
    assert scope_table(rows) == (
        "perturbed  scope       queries   squared error   expected  paper's formula\n"
        "weight     model_wise       44      353.2 ± 14        359               87\n"
        "node       layer_wise        4  2876 ± 7.2e+02  2.491e+04"
    )
