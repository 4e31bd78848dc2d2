"""``pmt-lab study``: measurements of the method itself."""

from __future__ import annotations

import argparse
from pathlib import Path

import pmt
from pmt.protocol import DataSource, data_path
from pmt_lab.cli.common import Output, add_number, listed, one_of, whole
from pmt_lab.files import counted
from pmt_lab.plots.style import pyplot
from pmt_lab.studies.estimators import DEFAULT_ESTIMATORS
from pmt_lab.studies.gradient_job import GradientJob, run_gradient_study
from pmt_lab.studies.gradient_quality import QUERIES, GradientStudy
from pmt_lab.studies.gradient_tables import estimator_table, quality_table, scope_table

STUDIES = ("gradients",)
SUMMARY = "measure the quality of gradient estimates"
DESCRIPTION = """\
gradients: cosine and squared error of each estimator against the exact (straight-through) gradient,
layer by layer, compared with the theory; and layer-wise against model-wise perturbation at equal
cost. Needs torch. What has been measured is kept in --out, and the same command continues."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add("study", type=one_of(STUDIES), help=f"what to study: {', '.join(STUDIES)}")
    add("model", metavar="MODEL", help="file of a model, or the name of a bundled one")
    add("--data", metavar="DIR", required=True, help="data set as of `pmt train`, or bundled")
    add("--corruption", metavar="NAME", default="", help="corrupt the images (default: no)")
    add("--severity", metavar="S", type=whole(1, 5), help="of the corruption (default: 5)")
    add("--out", metavar="DIR", required=True, help="folder of figures and plots")
    add("--layers", metavar="SPEC", default="all", help="blocks or layers (default: all)")
    add(
        "--queries",
        metavar="LIST",
        type=listed(whole(1)),
        default=QUERIES,
        help=f"queries for each image and layer (default: {','.join(map(str, QUERIES))})",
    )
    add(
        "--estimators",
        metavar="LIST",
        type=listed(),
        default=DEFAULT_ESTIMATORS,
        help="weight, node, free_node, pooled or by_dimension, each followed by what differs from "
        f"the default preset, joined by + (default: {','.join(DEFAULT_ESTIMATORS)})",
    )
    add("--no-scopes", action="store_true", help="leave out layer-wise against model-wise")
    add("--no-plots", action="store_true", help="write no plots, which need matplotlib")
    add_number(parser, "--images N", "training images of the batch, by class", GradientJob.images)
    add_number(parser, "--repeats N", "estimates of each, perturbed anew", GradientJob.repeats, 2)
    add_number(parser, "--seed S", "seed of the perturbations", GradientJob.seed, 0)
    add_number(parser, "--threads T", "threads to use, 0 = all", 0, 0)


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    if not arguments.no_plots:
        pyplot()
    severity = 5 if arguments.severity is None else arguments.severity
    shift = (arguments.corruption, severity) if arguments.corruption else ()
    names = ("out", "layers", "estimators", "queries", "images", "repeats", "seed", "threads")
    job = GradientJob(
        pmt.load(arguments.model),
        DataSource(data_path(arguments.data), *shift),
        scopes=not arguments.no_scopes,
        plots=not arguments.no_plots,
        **{name: getattr(arguments, name) for name in names},
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


def _tables(study: GradientStudy) -> str:
    means = estimator_table(study.rows)
    title = "mean over the layers that all estimators perturb, with the most queries"
    return f"{quality_table(study.rows)}\n\n{title}\n{means}"
