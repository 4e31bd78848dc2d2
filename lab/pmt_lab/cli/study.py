"""``pmt-lab study``: measurements of the method itself."""

from __future__ import annotations

import argparse
from pathlib import Path

from pmt._util.extras import load_pyplot
from pmt._util.text import counted, did_you_mean
from pmt.cli.arguments import (
    add_data,
    add_integer,
    add_json,
    add_model,
    add_threads,
    data_source,
    job_of,
    load_model,
    parts,
)
from pmt.cli.output import Output
from pmt_lab.studies.estimators import DEFAULT_ESTIMATORS
from pmt_lab.studies.gradient_job import GradientJob, run_gradient_study
from pmt_lab.studies.gradient_quality import QUERIES, GradientStudy
from pmt_lab.studies.gradient_tables import estimator_table, quality_table, scope_table

STUDIES = ("gradients",)
USAGE = "pmt-lab study gradients MODEL --data DIR --out DIR [options]"
SUMMARY = "measure the quality of gradient estimates"
DESCRIPTION = """\
gradients: cosine and squared error of each estimator against the exact (straight-through) gradient,
layer by layer, compared with the theory; and layer-wise against model-wise perturbation at equal
cost. Needs torch. What has been measured is kept in --out, and the same command continues."""


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
    _add_estimates(parser)
    parser.add_argument(
        "--no-scopes",
        action="store_true",
        help="leave out the comparison of layer-wise and model-wise perturbation",
    )
    parser.add_argument(
        "--no-plots", action="store_true", help="write no plots, which need matplotlib"
    )
    add_data(parser, required=True)
    add_threads(parser)
    add_json(parser)


def _add_estimates(parser: argparse.ArgumentParser) -> None:
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
        help="estimators, separated by commas: weight, node, pooled or by_dimension, each followed "
        "by what differs from the default preset, joined by + (default: "
        f"{','.join(DEFAULT_ESTIMATORS)})",
    )
    add_integer(
        parser,
        "--images N",
        "training images of the batch, balanced over the classes",
        default=GradientJob.images,
    )
    add_integer(
        parser,
        "--repeats N",
        "estimates of each, with different perturbations",
        default=GradientJob.repeats,
        within=(2, None),
    )
    add_integer(
        parser, "--seed S", "seed of the perturbations", default=GradientJob.seed, within=(0, None)
    )


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    estimators, queries = _checked(arguments)
    if not arguments.no_plots:
        load_pyplot()
    job = job_of(
        GradientJob,
        arguments,
        model=load_model(arguments),
        data=data_source(arguments),
        estimators=estimators,
        queries=queries,
        scopes=not arguments.no_scopes,
        plots=not arguments.no_plots,
    )
    result = run_gradient_study(
        job,
        opened=lambda data: output.text(f"model   {job.model.name}, {counted(len(data), 'image')}"),
        studied=lambda study: output.text(_tables(study)),
    )
    if job.scopes:
        output.text("\n" + scope_table(result.scopes))
    output.text(f"figures {Path(job.out)}")
    output.figures(result.to_json())
    return 0


def _checked(arguments: argparse.Namespace) -> tuple[tuple[str, ...], tuple[int, ...]]:
    if arguments.study not in STUDIES:
        raise ValueError(
            f"study {arguments.study!r} is unknown{did_you_mean(arguments.study, STUDIES)}"
        )
    estimators = tuple(filter(None, parts(arguments.estimators)))
    try:
        queries = tuple(int(text) for text in arguments.queries.split(","))
    except ValueError:
        raise ValueError(
            f"--queries {arguments.queries!r} must be whole numbers separated by commas"
        ) from None
    return estimators, queries


def _tables(study: GradientStudy) -> str:
    means = estimator_table(study.rows)
    title = "mean over the layers that all estimators perturb, with the most queries"
    return f"{quality_table(study.rows)}\n\n{title}\n{means}"
