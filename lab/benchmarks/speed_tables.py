"""Measure what lab/pages/performance.md shows, or show what is kept of it.

    python benchmarks/speed_tables.py FOLDER
    python benchmarks/speed_tables.py FOLDER --part onednn-avx2 --part steps-avx2
    python benchmarks/speed_tables.py --table results/speed/onednn-avx2.json

FOLDER holds mcunet-5fps.pkl and resnet8_cifar10_int8.tflite. Each part is a file in
lab/results/speed; parts that are kept are not measured again unless they are named. The host's
parts need an idle machine, and one with AVX-512 VNNI for both sections of the page: those that end
with avx2 run with PMT_ISA=avx2. Those of the Cortex-M7 are counted by QEMU, on any machine.
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from speed_parts import PARTS, measured

from pmt._util import atomic_file
from pmt._util.spread_json import spread_json
from pmt.firmware.export.report import INSTRUCTIONS_OF_A_MAC

RESULTS = Path(__file__).parents[1] / "results" / "speed"
RULES = {"by_dimension": "by dimension", "weight": "weights"}
KINDS = {
    "conv2d": "convolutions",
    "depthwise_conv2d": "depthwise convolutions",
    "fully_connected": "head of `fashion_mnist_dscnn`",
}


def main() -> None:
    """Measure parts, or print the table of a file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", type=Path, nargs="?", help="folder of the two model files")
    help_text = "measure this, again if it is kept"
    parser.add_argument("--part", action="append", choices=PARTS, metavar="NAME", help=help_text)
    parser.add_argument("--table", type=Path, help="measure nothing; the table of such a file")
    options = parser.parse_args()
    if options.table is not None:
        print(table_of(json.loads(options.table.read_text(encoding="utf-8"))))
        return
    if options.models is None:
        parser.error("FOLDER is needed, or --table alone")
    RESULTS.mkdir(exist_ok=True)
    for part in options.part or [name for name in PARTS if not file_of(name).exists()]:
        print(f"--- {part}", file=sys.stderr, flush=True)
        kept = measured(part, options.models)
        atomic_file.write_text(file_of(part), spread_json(kept, 3) + "\n")
        print(table_of(kept), flush=True)


def file_of(part: str) -> Path:
    """Return where a part is kept."""
    return RESULTS / f"{part}.json"


def table_of(kept: dict[str, Any]) -> str:
    """Return the Markdown table of a part, and under it what it depends on."""
    return f"{TABLES[kept['table']](kept)}\n\n{conditions(kept)}"


def markdown(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out a table."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join("".join(f"| {cell} " if cell else "| " for cell in x) + "|" for x in lines)


def conditions(kept: dict[str, Any]) -> str:
    """Say on what, with what, and when."""
    parts = []
    if "processor" in kept:
        parts += [kept["processor"], f"kernels `{kept['kernels']}`"]
    if "peak_gmacs" in kept:
        peaks = [f"{gmacs:.0f} with {threads(n)}" for n, gmacs in kept["peak_gmacs"].items()]
        parts.append(f"peak of `{kept['peak_instruction']}` in GMAC/s: {', '.join(peaks)}")
    if "onednn" in kept:
        parts.append(f"oneDNN {kept['onednn']}")
    if "compiler" in kept:
        parts.append(f"GCC {kept['compiler']}")
    if "repeat" in kept:
        parts.append(f"medians of {kept['repeat']}")
    if kept.get("environment"):
        parts.append(" ".join(f"`{name}={value}`" for name, value in kept["environment"].items()))
    parts.append(f"pmt {kept['pmt']} of {kept['commit']}, {kept['date']}")
    return textwrap.fill(
        f"{'; '.join(parts)}.", 118, break_long_words=False, break_on_hyphens=False
    )


def threads(count: int | str) -> str:
    """Return the count with its noun."""
    return f"{count} thread{'s' if int(count) > 1 else ''}"


def onednn_table(kept: dict[str, Any]) -> str:
    """Each inner loop's convolutions, microseconds an image."""
    titles = ["layers", "MMAC", "oneDNN, 1 image", "pmt", "ratio", "oneDNN, 100 images", "pmt"]
    titles += ["ratio", "pmt GMAC/s", "oneDNN's wrong outputs"]
    rows = []
    for model, groups in kept["models"].items():
        for group in groups:
            cells = [f"{model}, {group['layers']}", million(group["macs"])]
            for count in ("1", "100"):
                other, own = group["onednn_us"][count], group["pmt_us"][count]
                cells += [f"{other:,.0f}", f"{own:,.0f}", f"{own / other:.2f}"]
            speed = group["macs"] / group["pmt_us"]["100"] / 1e3
            rows.append([*cells, f"{speed:.0f}", f"{100 * group['wrong']:.1f} %"])
    return markdown(titles, rows)


def engines_table(kept: dict[str, Any]) -> str:
    """Whole networks, microseconds an image; how much of the outputs is as pmt's."""
    found = {
        (one["engine"], one["model"], one["images"], one["threads"]): one
        for one in kept["forwards"]
    }
    names = list(dict.fromkeys(name for name, *_ in found))
    columns = list(dict.fromkeys(key[1:] for key in found))
    titles = ["engine", *(column_title(*column) for column in columns)]
    models = list(dict.fromkeys(model for model, *_ in columns))
    equal = {(one["engine"], one["model"]): one["equal"] for one in kept["agreement"]}
    shown = [model for model in models if any(equal.get((name, model)) for name in names)]
    titles += [f"{model}, outputs as pmt's" for model in shown]
    rows = []
    for name in names:
        cells = [forward_cell(found.get((name, *column))) for column in columns]
        shares = [equal.get((name, model)) for model in shown]
        rows.append([name, *cells, *("" if x is None else f"{100 * x:.0f} %" for x in shares)])
    return markdown(titles, rows)


def column_title(model: str, images: int, count: int) -> str:
    """Say what a column is of."""
    several = f", {threads(count)}" if count > 1 else ""
    return f"{model}, {images} image{'s' if images > 1 else ''}{several}"


def forward_cell(one: dict[str, Any] | None) -> str:
    """Microseconds, and times pmt's."""
    return "-" if one is None else f"{one['microseconds']:,.0f} ({one['ratio']:.2f})"


def layers_table(kept: dict[str, Any]) -> str:
    """MCUNet by inner loop: where the time of a forward goes."""
    groups = sorted(kept["groups"], key=lambda one: -one["us"])
    sums = {key: sum(one[key] for one in groups) for key in ("macs", "us")}
    whole = {**sums, "us": kept["forward_us"], "layers": "a whole forward"}
    rows = []
    for one in [*groups, {**sums, "layers": "all, one by one"}, whole]:
        share = f"{100 * one['us'] / sums['us']:.0f} %"
        cells = [one["layers"], million(one["macs"]), f"{one['us']:,.1f}", share]
        rows.append([*cells, *speed_cells(one, kept.get("peak_gmacs"))])
    titles = ["layers by inner loop, 100 images", "MMAC", "µs per image", "share", "GMAC/s"]
    return markdown([*titles, *(["of the peak"] if "peak_gmacs" in kept else [])], rows)


def speed_cells(one: dict[str, Any], peaks: dict[str, float] | None) -> list[str]:
    """Return the speed, and its share of the peak if that is known; nothing without MACs."""
    if not one["macs"]:
        return ["", ""] if peaks else [""]
    speed = one["macs"] / one["us"] / 1e3
    return [f"{speed:.0f}", *([f"{100 * speed / peaks['1']:.0f} %"] if peaks else [])]


def steps_table(kept: dict[str, Any]) -> str:
    """Training steps by layers, estimator and threads."""
    several = any(row["threads"] > 1 for row in kept["rows"])
    rows = []
    for row in kept["rows"]:
        names = [row["layers"], RULES[row["rule"]], str(row["threads"]), str(row["repeat"])]
        figures = [f"{row['macs'] / 1e12:.3f}e12", f"{row['seconds']:.2f}", f"{row['gmacs']:.0f}"]
        figures += [f"{row['overhead']:.2f}", *([speed_up(row, kept)] if several else [])]
        rows.append([*names, *figures, f"{row['arena_bytes'] / 1e6:.1f} MB"])
    titles = ["layers", "perturbed", "threads", "steps", "MACs", "seconds", "GMAC/s"]
    titles += ["against its MACs at the forward's speed"]
    return markdown([*titles, *(["times one thread"] if several else []), "memory"], rows)


def speed_up(row: dict[str, Any], kept: dict[str, Any]) -> str:
    """Return how many times as fast a step is as with one thread."""
    same = [one for one in kept["rows"] if all(one[k] == row[k] for k in ("layers", "rule"))]
    (alone,) = [one for one in same if one["threads"] == 1]
    return f"{alone['seconds'] / row['seconds']:.2f}" if row["threads"] > 1 else ""


def cortex_forward_table(kept: dict[str, Any]) -> str:
    """Instructions of a forward, by inner loop."""
    layers = [one for one in kept["groups"] if one["macs"]]
    sums = [
        {"layers": name, **{key: sum(x[key] for x in some) for key in ("macs", *KERNELS)}}
        for name, some in (("all layers", layers), ("with adds and the mean", kept["groups"]))
    ]
    rows = []
    for one in [*layers, *sums]:
        counts = [f"{one[kernels] / 1e6:.1f} M" for kernels in KERNELS]
        of_a_mac = f"{one['arm_dsp'] / one['macs']:.2f}"
        rows.append([one["layers"], million(one["macs"]), *counts, of_a_mac])
    times = [f"{kept['projected_ms'][name]:.0f} ms" for name in KERNELS]
    rows.append([f"projected, {kept['clock_mhz']:.0f} MHz", "", *times, ""])
    return markdown(["layers", "MMAC", *KERNELS, "per MAC, `arm_dsp`"], rows)


def cortex_steps_table(kept: dict[str, Any]) -> str:
    """Instructions of a training step; shares are of its forwards on whole activations."""
    rows = [
        [
            row["layers"],
            f"{row['step'] / 1e6:,.0f}",
            f"{100 * (row['step'] - row['forwards']) / row['whole_forwards']:.1f} %",
            f"{100 * (row['step'] / row['whole_forwards'] - 1):.1f} %",
            f"{row['one_forward'] / 1e6:.1f}",
        ]
        for row in kept["rows"]
    ]
    titles = ["layers", "million", "beyond its forwards", "beyond them on whole activations"]
    return markdown([*titles, "one forward of it, million"], rows)


def cortex_of_a_mac_table(kept: dict[str, Any]) -> str:
    """The estimate's instructions a multiply-accumulate, and those counted."""
    rows = []
    for kind, words in KINDS.items():
        cells = [words]
        for kernels in reversed(KERNELS):
            counted = kept["counted"][kernels][kind]
            cells += [f"{INSTRUCTIONS_OF_A_MAC[kernels][kind]:g}", f"{counted:.2f}"]
        rows.append(cells)
    titles = [
        f"{kernels}, {what}" for kernels in reversed(KERNELS) for what in ("taken", "counted")
    ]
    return markdown(["instructions per MAC", *titles], rows)


def cortex_estimates_table(kept: dict[str, Any]) -> str:
    """Estimates of a step beside counts."""
    rows = []
    for row in kept["rows"]:
        counted, estimated = row["counted"], row["estimated"]
        beside = ["", ""] if counted is None else [f"{counted / 1e6:,.0f}"]
        beside += [] if counted is None else [f"{estimated / counted:.2f}"]
        names = [f"`{row['model']}`", row["layers"], str(row["images"])]
        rows.append([*names, f"{estimated / 1e6:,.0f}", *beside])
    titles = ["model", "layers", "images", "estimated, million", "counted, million", "ratio"]
    return markdown(titles, rows)


def million(macs: int) -> str:
    """Multiply-accumulates; nothing where there are none."""
    return f"{macs / 1e6:.2f}" if macs else ""


KERNELS = ("portable", "arm_dsp")
TABLES: dict[str, Callable[[dict[str, Any]], str]] = {
    "onednn": onednn_table,
    "engines": engines_table,
    "layers": layers_table,
    "steps": steps_table,
    "cortex-forward": cortex_forward_table,
    "cortex-steps": cortex_steps_table,
    "cortex-of-a-mac": cortex_of_a_mac_table,
    "cortex-estimates": cortex_estimates_table,
}

if __name__ == "__main__":
    main()
