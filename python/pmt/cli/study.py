"""``pmt study``: measurements of the method itself."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from pmt._util.extras import load_pyplot
from pmt.cli.arguments import add_data, add_json, add_model, add_threads, integer
from pmt.cli.output import Output, table
from pmt.cli.sources import data_source, load_model
from pmt.protocol import balanced_order
from pmt.research.studies.estimators import DEFAULT_ESTIMATORS, estimator_options
from pmt.research.studies.gradient_quality import QUERIES, GradientStudy, study_gradients
from pmt.research.studies.gradient_report import plot_by_layer, plot_by_queries, write_csv
from pmt.research.studies.scope_variance import ScopeVariance, compare_scopes

STUDIES = ("gradients",)
USAGE = "pmt study gradients MODEL --data DIR --out DIR [options]"
SUMMARY = "measure the quality of gradient estimates"
DESCRIPTION = """\
gradients: cosine and squared error of each estimator against the exact (straight-through) gradient,
layer by layer, beside the theory, and layer-wise against model-wise perturbation at equal cost.
Needs torch. What has been measured is kept in --out, and the same command goes on."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("study", metavar="STUDY", help=f"what to study: {', '.join(STUDIES)}")
    add_model(parser)
    parser.add_argument("--out", metavar="DIR", required=True, help="folder of figures and plots")
    parser.add_argument(
        "--layers",
        metavar="SPEC",
        default="all",
        help="names of blocks or layers, separated by commas (default: all)",
    )
    parser.add_argument(
        "--queries",
        metavar="LIST",
        default=",".join(map(str, QUERIES)),
        help="queries for each image and layer, separated by commas (default: "
        f"{','.join(map(str, QUERIES))})",
    )
    parser.add_argument(
        "--estimators",
        metavar="LIST",
        default=",".join(DEFAULT_ESTIMATORS),
        help="separated by commas: weight or node, and joined to it by + what differs from the "
        f"default preset (default: {','.join(DEFAULT_ESTIMATORS)})",
    )
    parser.add_argument(
        "--images",
        metavar="N",
        type=integer(1),
        default=16,
        help="training images of the batch, balanced over the classes (default: 16)",
    )
    parser.add_argument(
        "--repeats",
        metavar="N",
        type=integer(2),
        default=8,
        help="estimates of each, with other perturbations (default: 8)",
    )
    parser.add_argument(
        "--seed", metavar="S", type=integer(0), default=1, help="of the perturbations (default: 1)"
    )
    parser.add_argument(
        "--no-scopes",
        action="store_true",
        help="leave out the comparison of layer-wise and model-wise",
    )
    parser.add_argument(
        "--no-plots", action="store_true", help="write no plots, which need matplotlib"
    )
    add_data(parser, required=True)
    add_threads(parser)
    add_json(parser)


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    estimators, queries = _checked(arguments)
    if not arguments.no_plots:
        load_pyplot()
    model = load_model(arguments)
    pool = data_source(arguments).pool("train", model)
    data = pool.take(balanced_order(pool.labels, 0)[: arguments.images])
    output.text(f"model   {model.name}, {len(data)} images")
    out = Path(arguments.out)
    study = study_gradients(
        model,
        data,
        layers=arguments.layers,
        estimators=estimators,
        queries=queries,
        repeats=arguments.repeats,
        seed=arguments.seed,
        out=out,
        threads=arguments.threads,
    )
    output.text(_quality_table(study))
    scopes: list[ScopeVariance] = []
    if not arguments.no_scopes:
        scopes = compare_scopes(
            model,
            data,
            layers=arguments.layers,
            repeats=arguments.repeats,
            seed=arguments.seed,
            threads=arguments.threads,
        )
        output.text("")
        output.text(_scope_table(scopes))
    write_csv(study, out / "gradients.csv")
    if not arguments.no_plots:
        plot_by_layer(study, out / "cosine_by_layer.png")
        plot_by_queries(study, out / "error_by_queries.png")
    output.text(f"figures {out}")
    figures = {
        "images": study.images,
        "rows": [asdict(row) for row in study.rows],
        "scopes": [asdict(row) for row in scopes],
    }
    output.figures(figures)
    return 0


def _checked(arguments: argparse.Namespace) -> tuple[list[str], list[int]]:
    if arguments.study not in STUDIES:
        raise ValueError(
            f"study {arguments.study!r} is unknown; choose one of {', '.join(STUDIES)}"
        )
    estimators = [name.strip() for name in arguments.estimators.split(",") if name.strip()]
    try:
        queries = [int(text) for text in arguments.queries.split(",")]
    except ValueError:
        raise ValueError(
            f"--queries {arguments.queries!r} must be whole numbers separated by commas"
        ) from None
    for name in estimators:
        for count in queries:
            estimator_options(name, count, arguments.seed)
    return estimators, queries


def _quality_table(study: GradientStudy) -> str:
    titles = ["layer", "estimator", "queries", "cosine", "expected", "squared error", "expected "]
    rows = [
        [
            row.layer,
            row.estimator,
            str(row.queries),
            f"{row.cosine:.3f} ± {row.cosine_error:.3f}",
            f"{row.expected_cosine:.3f}",
            f"{row.squared_error:.3g} ± {row.squared_error_error:.1g}",
            f"{row.expected_squared_error:.3g}",
        ]
        for row in study.rows
    ]
    return table(titles, rows, left=["layer", "estimator"])


def _scope_table(scopes: list[ScopeVariance]) -> str:
    titles = ["perturbed", "scope", "queries", "squared error", "expected", "paper's formula"]
    rows = [
        [
            row.estimator,
            row.scope,
            str(row.queries),
            f"{row.measured:.4g} ± {row.measured_error:.2g}",
            f"{row.expected:.4g}",
            "" if row.paper is None else f"{row.paper:.4g}",
        ]
        for row in scopes
    ]
    return table(titles, rows, left=["perturbed", "scope"])
