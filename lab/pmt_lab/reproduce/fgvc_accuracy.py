"""Table 10: transfer of an ImageNet network to fine-grained data sets."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pmt.datasets import image_files
from pmt_lab.reproduce.drawing import draw_groups
from pmt_lab.reproduce.grid_runs import forecast_grids, measure_grids
from pmt_lab.reproduce.published import published
from pmt_lab.reproduce.run_rows import Found, accuracy_row, find
from pmt_lab.reproduce.study import ACCURACY, Context, Forecast, Row, Scale, Study, not_run
from pmt_lab.reproduce.study_grids import read_study_grid, small
from pmt_lab.sweep import Grid

__all__ = ["STUDY"]

Data = Mapping[str, Any]

_NAME = "fgvc-accuracy"
_GRIDS = ("fgvc", "fgvc_backprop")
# Multiply-accumulates of the paper's method for an image, block B3 and the head, and its epochs.
_MACS_AN_IMAGE, _EPOCHS = 2.37e9, 50
# Share of the paper's budget, of forwards and of epochs, that is run: all where it takes an hour.
_SHARES = {"food": 1.0}
_SHARE = 0.1
_HELD_OUT = 100
_MOST_TEST_IMAGES = 3000
# Published line, grid and method by title.
_LINES = {
    "all layers, float32": ("fp32_full", "fgvc_backprop", "bp_fp32"),
    "TinyTrain": ("tinytrain", "fgvc_backprop", "tinytrain"),
    "MCUTrain": ("mcutrain", "fgvc_backprop", "mcutrain"),
    "head alone": ("", "fgvc", "preparation_only"),
    "default": ("bp_free", "fgvc", "default"),
}


def _grids(scale: Scale, context: Context) -> dict[str, Grid]:
    """Return both grids of every data set that the user has, by grid and data set."""
    read = {name: read_study_grid(name) for name in _GRIDS}
    if scale == "small":
        return {f"{name}_small": small(grid) for name, grid in read.items()}
    if not context.fine_grained:
        raise FileNotFoundError(
            "no fine-grained data set is found; `pmt download cub200` fetches one, `pmt download` "
            "lists the others; or give --data the folder that holds them"
        )
    return {
        f"{name}_{data}": _on(grid, data, path, context)
        for data, path in context.fine_grained.items()
        for name, grid in read.items()
    }


def _on(grid: Grid, data: str, path: Path, context: Context) -> Grid:
    """Return a grid on a data set: its classes, all its training images, its share of MACs."""
    train, test = (image_files(path, split=split) for split in ("train", "test"))
    share = _SHARES.get(data, _SHARE)
    epochs = round(_EPOCHS * share)
    macs = _MACS_AN_IMAGE * epochs * (len(train) - _HELD_OUT)
    chosen = {"images": len(train), "held_out": _HELD_OUT}
    if len(test) > _MOST_TEST_IMAGES:
        chosen["test_images"] = _MOST_TEST_IMAGES
    return dataclasses.replace(
        grid,
        model={"path": str(context.need_mcunet()), "classes": len(train.class_names)},
        data={**grid.data, "path": str(path)},
        protocol={**grid.protocol, **chosen},
        macs=int(float(f"{macs:.2g}")) if grid.macs else 0,
        options=grid.options if grid.macs else {**grid.options, "epochs": epochs},
    )


def _measure(scale: Scale, context: Context) -> dict[str, Any]:
    found = measure_grids(_grids(scale, context), context)
    if scale == "small":
        return {**found, "classes": {}}
    classes = {
        name: len(image_files(path, split="train").class_names)
        for name, path in context.fine_grained.items()
    }
    absent = {n: c for n, c in context.earlier.get("classes", {}).items() if n not in classes}
    kept = {
        grid: runs
        for grid, runs in context.earlier.get("grids", {}).items()
        if grid.rpartition("_")[2] in absent
    }
    return {**found, "grids": {**kept, **found["grids"]}, "classes": {**absent, **classes}}


def _forecast(scale: Scale, context: Context) -> Forecast:
    return forecast_grids(_grids(scale, context), context)


def _compare(data: Data, paper: Data) -> list[Row]:
    """Return the accuracy of every line on every data set."""
    if "fgvc_small" in data.get("grids", {}):
        return [
            accuracy_row(f"{title}: small", _found(data, title, "small"), None) for title in _LINES
        ]
    rows = []
    for title, (line, _, _) in _LINES.items():
        for place, name in enumerate(paper["data"]):
            theirs = paper[line][place] if line else None
            classes = data.get("classes", {}).get(name)
            if classes is None:
                if theirs is not None:
                    rows.append(_absent(title, name, theirs))
            else:
                published_classes = paper["classes"][place]
                rows.append(_row(title, name, data, theirs, published_classes))
    return rows


def _found(data: Data, title: str, name: str) -> Found:
    _, grid, method = _LINES[title]
    return find(data, f"{grid}_{name}", method=method)


def _absent(title: str, name: str, theirs: float) -> Row:
    return not_run(f"{title}: {name}", theirs, ACCURACY.unit, "the images are not at hand")


def _row(title: str, name: str, data: Data, theirs: float | None, published_classes: int) -> Row:
    """Compare with the paper only where the data has the same classes."""
    found, classes = _found(data, title, name), data["classes"][name]
    share = _SHARES.get(name, _SHARE)
    why = [] if title == "head alone" else [f"{100 * share:.3g} % of the paper's budget"]
    if classes == published_classes:
        why.append(_images(title, name, data, found))
        return accuracy_row(f"{title}: {name}", found, theirs, why="; ".join(why))
    other = f"{classes} classes, the paper has {published_classes}"
    return accuracy_row(f"{title}: {name}", found, None, why="; ".join([*why, other]))


def _images(title: str, name: str, data: Data, found: Found) -> str:
    """Say how many images there are, and how many test images the data set has as published."""
    protocol = data["grids"][f"{_LINES[title][1]}_{name}"]["protocol"]
    train = f"{protocol['images'] - protocol['held_out']:,} training images"
    if not found.runs:
        return train
    paper = published(_NAME)
    test = found.runs[0]["after"]["test"]["n"]
    every = dict(zip(paper["data"], paper["test_images"], strict=True))[name]
    return f"{train}, {test:,} test images of {every:,}"


def _plot(data: Data, *, ax: Any = None) -> Any:
    """Draw the accuracy of every line on every data set, and the published one."""
    paper = published(_NAME)
    names = list(data.get("classes", {})) or ["small"]
    groups, theirs = {}, {}
    for title, (line, _, _) in _LINES.items():
        label = f"{title}; published: paper's method" if line == "bp_free" else title
        found = [_found(data, title, name) for name in names]
        groups[label] = [one.accuracy() if one.runs else None for one in found]
        if line:
            theirs[label] = [_published(data, paper, line, name) for name in names]
    return draw_groups(groups, [_with_classes(data, paper, name) for name in names], theirs, ax=ax)


def _published(data: Data, paper: Data, line: str, name: str) -> float | None:
    """Return the published accuracy of a data set; None where the paper has other classes."""
    if name not in paper["data"]:
        return None
    place = paper["data"].index(name)
    same = paper["classes"][place] == data["classes"][name]
    return float(paper[line][place]) if same else None


def _with_classes(data: Data, paper: Data, name: str) -> str:
    """Return a data set's name, its classes, and how many the paper has if they are others."""
    classes = data.get("classes", {}).get(name)
    if classes is None:
        return name
    theirs = dict(zip(paper["data"], paper["classes"], strict=True)).get(name, classes)
    return f"{name}, {classes} classes" + (f"\n(paper: {theirs})" if theirs != classes else "")


STUDY = Study(
    _NAME,
    "Table 10",
    "Transfer to fine-grained data sets",
    _measure,
    _compare,
    _plot,
    _forecast,
)
