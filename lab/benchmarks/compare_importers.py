"""Compare imported networks with the engine their format belongs to, operator by operator.

    python benchmarks/compare_importers.py [FILE ...] [--data DIR] [--images N] [--json PATH]

FILEs are full-integer .tflite; without any, networks that the tests generate are taken. Each op is
run by pmt on the other engine's own inputs. Then whole networks run, and the classes they predict
are compared: with the engine's reference kernels and with its default ones. Images are those of the
data set's test split, resized to each network's input, or random.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from importer_differences import (
    Int8Array,
    OpDifference,
    TopOne,
    compare_ops,
    compare_top_one,
    default_outputs,
    head_classes,
    litert_activations,
    network_classes,
)

import pmt
from pmt._util.progress import ProgressLine
from pmt.cli.output import table
from pmt.formats.reading import read
from pmt.model import Model
from pmt.net.graph import Graph

ROOT = Path(__file__).parents[2]
KEYS = ("values", "differing")


@dataclass(frozen=True)
class Comparison:
    """One network: its ops, and its classes three ways.

    ``head`` is of the last op on the engine's own input, ``whole`` of the network from the image
    on, both against reference kernels; ``default`` of the network against the default kernels.
    """

    name: str
    ops: list[OpDifference]
    head: TopOne
    whole: TopOne
    default: TopOne


def compare_tflite(path: Path, images: Int8Array) -> Comparison:
    reference = litert_activations(path, images)
    graph = reference.lowered.graph
    classes = network_classes(graph, reference.images)
    return Comparison(
        path.stem,
        compare_ops(graph, reference.values, reference.lowered.operators),
        compare_top_one(head_classes(graph, reference.values), reference.logits),
        compare_top_one(classes, reference.logits),
        compare_top_one(classes, default_outputs(path, graph, reference.images)),
    )


# A format's importer is compared by a function of the file and int8 images (N, H, W, C).
FORMATS: dict[str, Callable[[Path, Int8Array], Comparison]] = {".tflite": compare_tflite}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", metavar="FILE", nargs="*", type=Path, help="networks")
    parser.add_argument("--data", metavar="DIR", type=Path, help="data set (default: random)")
    parser.add_argument("--images", metavar="N", type=int, default=100, help="default: 100")
    parser.add_argument("--json", metavar="PATH", type=Path, help="write the figures as JSON")
    a = parser.parse_args()
    for path in a.files:
        if path.suffix not in FORMATS:
            parser.error(f"{path}: its suffix is none of {', '.join(FORMATS)}")
    if a.images < 1:
        parser.error(f"--images {a.images}: must be 1 or more")
    return a


def generated_files(folder: Path) -> list[Path]:
    sys.path.append(str(ROOT / "tests" / "support"))
    from tflite_networks import GENERATED, generated

    for name in GENERATED:
        (folder / f"{name}.tflite").write_bytes(generated(name))
    return [folder / f"{name}.tflite" for name in GENERATED]


def images_for(graph: Graph, a: argparse.Namespace) -> Int8Array:
    source = graph.tensors[graph.input]
    size = (source.height, source.width)
    if a.data is None:
        rng = np.random.default_rng(0)
        return rng.integers(-128, 128, (a.images, *size, source.channels)).astype(np.int8)
    images = pmt.datasets.load(a.data, split="test", size=size).images[: a.images]
    return Model.from_graph(graph).prepare(np.ascontiguousarray(images))


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f} %" if part else "0"


def operator_rows(comparisons: list[Comparison]) -> list[list[str]]:
    """One row for each network and operator, and one for each operator of all networks."""
    rows = []
    groups = [(c.name, c.ops) for c in comparisons]
    if len(comparisons) > 1:
        groups.append(("all", [op for c in comparisons for op in c.ops]))
    for name, ops in groups:
        for operator in dict.fromkeys(sorted(op.operator for op in ops)):
            same = [op for op in ops if op.operator == operator]
            values, differing = (sum(getattr(op, key) for op in same) for key in KEYS)
            rows.append(
                [
                    name,
                    operator,
                    str(len(same)),
                    f"{values:,}",
                    share(differing, values),
                    str(max(op.largest for op in same)),
                ]
            )
    return rows


def class_rows(comparisons: list[Comparison]) -> list[list[str]]:
    return [
        [
            c.name,
            str(c.whole.images),
            *(f"{t.equal} / {t.images - t.tied}" for t in (c.head, c.whole, c.default)),
            str(c.whole.widest),
        ]
        for c in comparisons
    ]


def main() -> None:
    a = arguments()
    comparisons = []
    with tempfile.TemporaryDirectory() as folder:
        files = a.files or generated_files(Path(folder))
        progress = ProgressLine(len(files))
        for done, path in enumerate(files):
            progress.update(done, path.name)
            comparisons.append(FORMATS[path.suffix](path, images_for(read(path), a)))
        progress.clear()
    titles = ["network", "operator", "ops", "values", "differ", "steps at most"]
    print(table(titles, operator_rows(comparisons), left=titles[:2]))
    titles = ["network", "images", "head", "whole", "default kernels", "widest margin"]
    print("\nEqual classes of images that are not tied:")
    print(table(titles, class_rows(comparisons), left=titles[:1]))
    if a.json:
        a.json.write_text(json.dumps([asdict(c) for c in comparisons], indent=2) + "\n")


if __name__ == "__main__":
    main()
