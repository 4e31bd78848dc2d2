r"""Run the simulations of lab/pages/simulated_estimators.md, or show what is kept of them.

    python benchmarks/simulated_estimators_table.py cifar10_mcunet --data cifar-10-batches-bin \
        --results results/simulated-estimators.json
    python benchmarks/simulated_estimators_table.py --table \
        results/simulated-estimators.json

Each row is one run of benchmarks/simulated_estimators.py for each seed, which --results joins as
soon as it ends: a run that the file holds is not done again. A row takes one to two minutes.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pmt._util import atomic_file
from pmt._util.origin import origin
from pmt._util.spread_json import spread_json
from pmt.cli.output import table

ALONE, SEVERAL = (1,), (1, 2, 3)


def last_layers(first: int, end: int) -> str:
    """Return the last layers of some inverted residuals, which have the fewest channels."""
    return ",".join(f"b{block}.pointwise2" for block in range(first, end))


# Those that a line of text builds on have three seeds.
UNPREPARED: dict[str, tuple[str, tuple[int, ...]]] = {
    "exact gradient of every position": ("--estimator exact", SEVERAL),
    "exact gradient of every channel": ("", SEVERAL),
    "pooled, 8 queries": ("--queries 8", SEVERAL),
    "biases at 0.1": ("--queries 8 --bias-rate 0.1", SEVERAL),
    "biases and head alone": ("--queries 8 --rate 1e-9", SEVERAL),
    "inputs whitened": ("--queries 8 --whiten 0.3", SEVERAL),
    "channel scales too": ("--queries 8 --scales 0.3", SEVERAL),
    "channel scales too, exact": ("--scales 1", ALONE),
    "16 components of clean images": ("--queries 8 --subspace 16 --subspace-of clean", ALONE),
    "regression on softmax residuals": ("--queries 8 --jacobian 0.05", ALONE),
}
PREPARED: dict[str, tuple[str, tuple[int, ...]]] = {
    "exact gradient of every position": ("--estimator exact", SEVERAL),
    "exact gradient of every channel": ("", SEVERAL),
    "pooled, 8 queries": ("--queries 8", SEVERAL),
    "16 components, exact": ("--queries 8 --subspace 16", SEVERAL),
    "16 components, of estimates": ("--queries 8 --subspace 16 --subspace-of estimates", ALONE),
    "16 components of clean images": ("--queries 8 --subspace 16 --subspace-of clean", ALONE),
    "channel scales too": ("--queries 8 --scales 0.1", SEVERAL),
    "scales and biases alone": ("--queries 8 --scales 0.1 --rate 1e-9", SEVERAL),
    "exact, B3 instead of B2": ("--estimator exact --layers B3", ALONE),
    "exact, B4 instead of B2": ("--estimator exact --layers B4", ALONE),
    "last layers of b4 to b7": (f"--queries 8 --layers {last_layers(4, 8)}", ALONE),
    "last layers of b4 to b7, exact": (f"--estimator exact --layers {last_layers(4, 8)}", ALONE),
    "last layers of b0 to b3": (f"--queries 8 --layers {last_layers(0, 4)}", SEVERAL),
    "last layers of b0 to b3, exact": (f"--estimator exact --layers {last_layers(0, 4)}", SEVERAL),
}
ROWS = {"none": UNPREPARED, "align+head": PREPARED}
RATES = {
    "none": "--rate 0.1 --bias-rate 1 --head-rate 0.5",
    "align+head": "--rate 0.1 --bias-rate 0.1 --head-rate 0.05",
}
TITLES = {"none": "without preparation", "align+head": "after alignment and the exact head"}


def main() -> None:
    """Run what is missing, or print the tables of a file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", nargs="?", default="cifar10_mcunet")
    parser.add_argument("--data", help="data set folder")
    parser.add_argument("--results", type=Path, help="JSON file that runs join")
    parser.add_argument("--table", type=Path, help="run nothing; the tables of such a file")
    options = parser.parse_args()
    if options.table is not None:
        print(table_of(json.loads(options.table.read_text(encoding="utf-8"))))
        return
    if options.data is None or options.results is None:
        parser.error("give --data and --results, or --table alone")
    run_missing(options.model, options.data, options.results)
    print(table_of(json.loads(options.results.read_text(encoding="utf-8"))))


def run_missing(model: str, data: str, results: Path) -> None:
    """Run each row's seeds that the file lacks, and join them one by one."""
    empty: dict[str, Any] = {"runs": {}, "spectrum": {}}
    kept = json.loads(results.read_text(encoding="utf-8")) if results.exists() else empty
    kept = {**origin(), "model": model, "runs": kept["runs"], "spectrum": kept["spectrum"]}
    jobs = [
        (preparation, label, flags, seed)
        for preparation, rows in ROWS.items()
        for label, (flags, seeds) in rows.items()
        for seed in seeds
    ]
    for done, (preparation, label, flags, seed) in enumerate(jobs, 1):
        runs = kept["runs"].setdefault(preparation, {}).setdefault(label, {})
        if str(seed) in runs:
            continue
        words = f"{RATES[preparation]} {flags} --seed {seed}"
        runs[str(seed)] = simulated(model, data, preparation, words)
        print(f"{done}/{len(jobs)}  {TITLES[preparation]}, {label}, seed {seed}", flush=True)
        atomic_file.write_text(results, spread_json(kept, 4) + "\n")
    for preparation in ROWS:
        if preparation not in kept["spectrum"]:
            kept["spectrum"][preparation] = spectrum(model, data, preparation)
    atomic_file.write_text(results, spread_json(kept, 4) + "\n")


def simulated(model: str, data: str, preparation: str, words: str) -> dict[str, Any]:
    """Return held-out loss (nats) and accuracy (0..1), before and after one run."""
    # Here, since torch is needed to run, not to show what is kept.
    import simulated_estimators as benchmark

    options = benchmark.arguments(line(model, data, preparation, words))
    network, train, held_out = benchmark.prepared(options)
    steps = benchmark.train_by_quarters(options, network, train, held_out)
    start, *_, last = [evaluation for _, evaluation in steps]
    rounded = [[round(e.loss, 4), round(e.accuracy, 4)] for e in (start, last)]
    return {"options": words, "start": rounded[0], "end": rounded[1]}


def spectrum(model: str, data: str, preparation: str) -> dict[str, dict[str, float]]:
    """Return what an estimator could exploit in each layer's exact gradients."""
    import simulated_estimators as benchmark

    options = benchmark.arguments(line(model, data, preparation, "--spectrum"))
    network, train, _ = benchmark.prepared(options)
    columns = ["gradients", *benchmark.SPECTRUM]
    rows = benchmark.spectrum_rows(network, train, options)
    return {row[0]: rounded(dict(zip(columns, row[1:], strict=True))) for row in rows}


def rounded(values: dict[str, float]) -> dict[str, float]:
    """Return numbers to six digits."""
    return {name: float(f"{value:.6g}") for name, value in values.items()}


def line(model: str, data: str, preparation: str, words: str) -> list[str]:
    """Return a command line of the simulation."""
    return [model, "--data", data, "--preparation", preparation, *words.split()]


def table_of(kept: dict[str, Any]) -> str:
    """Return a table of runs and one of the spectrum for each preparation."""
    parts = []
    for preparation in ROWS:
        parts.append(f"{TITLES[preparation]}: {RATES[preparation]}")
        parts.append(run_table(kept["runs"][preparation], ROWS[preparation]) + "\n")
    for preparation in ROWS:
        parts.append(f"exact gradients of channels, {TITLES[preparation]}")
        parts.append(spectrum_table(kept["spectrum"][preparation]) + "\n")
    return "\n".join(parts).rstrip("\n")


def run_table(
    runs: dict[str, dict[str, dict[str, Any]]], rows: dict[str, tuple[str, tuple[int, ...]]]
) -> str:
    """Return losses and accuracies of each seed; the start is that of the first row."""
    first = next(iter(runs.values())).values()
    start = [run["start"] for run in first]
    lines = [["start", "", *cells(start[:1])]]
    for label, (flags, _) in rows.items():
        if label in runs:
            shown = re.sub(r",\S+", ",...", flags)
            lines.append([label, shown, *cells([run["end"] for run in runs[label].values()])])
    titles = ["row", "options", "loss", "accuracy, %"]
    return table(titles, lines, left=["row", "options"])


def cells(pairs: list[list[float]]) -> list[str]:
    """Return losses and accuracies, those of several seeds side by side."""
    losses = ", ".join(f"{loss:.3f}" for loss, _ in pairs)
    return [losses, ", ".join(f"{100 * accuracy:.1f}" for _, accuracy in pairs)]


def spectrum_table(layers: dict[str, dict[str, float]]) -> str:
    """Return a row for each layer."""
    columns = list(next(iter(layers.values())))
    shown: dict[str, Callable[[float], str]] = {"gradients": lambda value: str(int(value))}
    rows = [
        [name, *(shown.get(column, "{:.3f}".format)(values[column]) for column in columns)]
        for name, values in layers.items()
    ]
    return table(["layer", *columns], rows, left=["layer"])


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
