"""``pmt show``: a contact sheet of a data set, or of its images corrupted."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pmt import corruptions
from pmt._util import atomic_file
from pmt._util.printable import printable
from pmt._util.progress import ProgressLine
from pmt.cli.arguments import (
    DATA_HELP,
    add_coarse_labels,
    add_constants,
    add_json,
    checked_constants,
    integer,
)
from pmt.cli.output import Output
from pmt.cli.sources import (
    add_corruption_seed,
    add_size,
    add_split,
    chosen_corruptions,
    chosen_severities,
    read_clean,
)
from pmt.datasets import Dataset
from pmt.datasets.cifar import has_cifar
from pmt.datasets.corrupted_arrays import find_corrupted, read_corrupted, stored_names
from pmt.protocol.data_source import BUNDLED
from pmt.research.sheets import Sheet, corruption_sheet, dataset_sheet
from pmt.research.sheets.drawing import png
from pmt.research.sheets.sheet import Image

USAGE = "pmt show DATA --out SHEET.png [--corruptions [NAMES]] [options]"
SUMMARY = "a contact sheet of a data set, or of its images corrupted"
DESCRIPTION = """\
Draw a data set as a PNG: a row for each class, with its first images. With --corruptions: a row
for each corruption and a column for each severity, for one image or some. Small images are
enlarged by a whole factor. Where DATA is or holds a CIFAR-10-C folder, its arrays are shown."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("data", metavar="DATA", help=DATA_HELP)
    parser.add_argument("--out", metavar="PATH", required=True, help="file to write, .png")
    parser.add_argument(
        "--corruptions",
        metavar="NAMES",
        nargs="?",
        const="all",
        help="show corruptions: all (also without NAMES), or names separated by commas; `pmt "
        "corrupt --help` lists them",
    )
    parser.add_argument(
        "--severities",
        metavar="LIST",
        help="severities to show, separated by commas (default: 1,2,3,4,5)",
    )
    add_split(parser)
    parser.add_argument(
        "--images",
        metavar="N",
        type=integer(1, 1000),
        help="images of each class (default: 10); with --corruptions images in all (default: 1)",
    )
    parser.add_argument(
        "--index",
        metavar="LIST",
        help="with --corruptions: which images of the split, numbers from 0 separated by commas "
        "(default: the first ones)",
    )
    add_corruption_seed(parser, ", as in `pmt corrupt`")
    add_size(parser, "first")
    add_coarse_labels(parser)
    add_constants(parser)
    add_json(parser)


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Run the command."""
    path = _checked_out(arguments.out)
    if arguments.corruptions is None:
        sheet = _dataset_sheet(arguments)
    else:
        sheet = _corruption_sheet(arguments)
    data = png(sheet)
    atomic_file.write_bytes(path, data)
    output.text(
        f"{printable(sheet.title)}\n{len(sheet.rows)} rows of {sheet.columns} images, in {path}"
    )
    output.figures(
        {"out": str(path), "rows": [row.label for row in sheet.rows], "columns": sheet.columns}
    )
    return 0


def _checked_out(out: str) -> Path:
    """Find out before the work, not after it."""
    path = Path(out)
    if path.suffix != ".png":
        raise ValueError(f"--out {out}: must end in .png")
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"--out {out}: its folder does not exist; create it")
    return path


def _dataset_sheet(arguments: argparse.Namespace) -> Sheet:
    for option in ("severities", "index", "constants"):
        if getattr(arguments, option) is not None:
            raise ValueError(f"--{option} needs --corruptions")
    data = read_clean(arguments)
    height, width, channels = data.images.shape[1:]
    title = f"{data.name}: {len(data):,} {arguments.split} images, {height}x{width}x{channels}"
    return dataset_sheet(data, images=arguments.images or 10, title=title)


def _corruption_sheet(arguments: argparse.Namespace) -> Sheet:
    source = _Source.opened(arguments)
    severities = chosen_severities("--severities", arguments.severities or "1,2,3,4,5")
    names = source.names(arguments.corruptions)
    indices = _chosen_images(arguments, source, names[0])
    line = ProgressLine(len(names) * len(severities), unit="tile")
    labelled = source.clean or source.corrupted(names[0], severities[0])
    number = "image" if len(indices) == 1 else "images"
    title = f"{source.title}, {arguments.split} {number} {', '.join(map(str, indices))}"
    if len(indices) == 1:
        captions = [""]
        title += f" ({_class_name(labelled, indices[0])})"
    else:
        captions = [f"{index}: {_class_name(labelled, index)}" for index in indices]
    try:
        return corruption_sheet(
            lambda name, severity: source.images(name, severity, indices),
            names,
            severities,
            captions=captions,
            originals=None if source.clean is None else [source.clean.images[i] for i in indices],
            title=title,
            progress=lambda done: line.update(done, names[(done - 1) // len(severities)]),
        )
    finally:
        line.clear()


def _class_name(data: Dataset, index: int) -> str:
    return data.class_names[int(data.labels[index])]


def _chosen_images(arguments: argparse.Namespace, source: _Source, name: str) -> list[int]:
    count = len(source.clean or source.corrupted(name, 1))
    if arguments.index is None:
        return list(range(min(arguments.images or 1, count)))
    if arguments.images is not None:
        raise ValueError("--images and --index exclude each other: leave one out")
    parts = [part.strip() for part in arguments.index.split(",")]
    wrong = [repr(part) for part in parts if not part.isdecimal() or int(part) >= count]
    if wrong:
        raise ValueError(f"--index {', '.join(wrong)}: must be 0 to {count - 1}")
    return [int(part) for part in parts]


@dataclass(frozen=True)
class _Source:
    """Corrupted images: from stored arrays, or made here from the clean ones."""

    title: str
    split: str
    seed: int
    constants: str
    labels: str
    clean: Dataset | None
    stored: Path | None

    @classmethod
    def opened(cls, arguments: argparse.Namespace) -> _Source:
        path = Path(arguments.data)
        stored = None if arguments.data == BUNDLED else find_corrupted(path, arguments.split)
        if stored is not None and arguments.size is not None:
            raise ValueError(f"--size {arguments.size}: {stored} holds corrupted arrays; leave it")
        clean = None
        if stored is None or has_cifar(path):
            clean = read_clean(arguments)
        name = str(stored or (clean.name if clean else path))
        labels = "coarse" if arguments.coarse_labels else "fine"
        constants = checked_constants(arguments)
        return cls(name, arguments.split, arguments.seed, constants, labels, clean, stored)

    def names(self, text: str) -> tuple[str, ...]:
        if text == "all" and self.stored is not None:
            there = stored_names(self.stored)
            known = tuple(name for name in corruptions.names() if name in there)
            return known + tuple(name for name in there if name not in known)
        return chosen_corruptions("--corruptions", text)

    def corrupted(self, name: str, severity: int) -> Dataset:
        assert self.stored is not None
        return read_corrupted(self.stored, name, severity, labels=self.labels)

    def images(self, name: str, severity: int, indices: Sequence[int]) -> list[Image]:
        if self.stored is not None:
            data = self.corrupted(name, severity)
            return [np.asarray(data.images[index]) for index in indices]
        assert self.clean is not None
        chosen = np.array(indices)
        seed = corruptions.split_seed(self.seed, self.split)
        images = corruptions.corrupt(
            self.clean.images[chosen],
            name,
            severity,
            seed=seed,
            indices=chosen,
            constants=self.constants,
        )
        return list(images)
