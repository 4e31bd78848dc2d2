"""Table 10: transfer of an ImageNet network to fine-grained data sets."""

import dataclasses
from pathlib import Path
from typing import Any

from pmt.datasets import image_files
from pmt_lab.reproduce.drawing import draw_sheet
from pmt_lab.reproduce.runs import Found, accuracy_row, find, measure_grids, read_study_grid, small
from pmt_lab.reproduce.study import ACCURACY, Context, Data, Row, Scale, Study, not_run, published
from pmt_lab.sweep import Grid

_NAME = "fgvc-accuracy"
_GRIDS = (
    *("fgvc", "fgvc_automatic", "fgvc_backprop", "fgvc_late_layers", "fgvc_cross_fit"),
    *("fgvc_released", "fgvc_released_head"),
)
# Multiply-accumulates for an image in all epochs: of the paper's method, block B3 and the head, and
# of the released settings, six late layers and the head, or a quarter of them.
_EPOCHS = 50
_MACS_AN_IMAGE = {
    "fgvc": 2.37e9 * _EPOCHS,
    "fgvc_automatic": 2.37e9 * _EPOCHS,
    "fgvc_late_layers": 2.487e9 * 25,
    "fgvc_cross_fit": 2.487e9 * 100,
}
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
    "MCUTrain, cross-fitted": ("", "fgvc_backprop", "mcutrain_cross_fit"),
    "head alone": ("", "fgvc", "preparation_only"),
    "released settings": ("bp_free", "fgvc_released", "released"),
    "released settings, head alone": ("", "fgvc_released_head", "released"),
    "default": ("bp_free", "fgvc_automatic", "default"),
    "default, never cross-fitted": ("", "fgvc", "default"),
    "late layers, a quarter, never cross-fitted": ("", "fgvc_late_layers", "default"),
    "late layers, a quarter, cross-fitted": ("", "fgvc_late_layers", "default_cross_fit"),
    "late layers, cross-fitted": ("", "fgvc_cross_fit", "default_cross_fit"),
}


def _measure(scale: Scale, context: Context) -> dict[str, Any]:
    """Measure the grids on every data set that the user has."""
    read = {name: read_study_grid(name) for name in _GRIDS}
    if scale == "small":
        # The small network has none of the layers that the released settings name.
        grids = {
            f"{name}_small": dataclasses.replace(small(grid), layers=("B2,head",))
            for name, grid in read.items()
        }
        return {**measure_grids(grids, context), "classes": {}}
    folders = context.fine_grained()
    if not folders:
        raise FileNotFoundError(
            "no fine-grained data set is found; `pmt download cub200` fetches one, `pmt download` "
            "lists the others; or give --data the folder that holds them"
        )
    grids = {
        f"{name}_{data}": _on(grid, data, path, context, _MACS_AN_IMAGE.get(name, 0))
        for data, path in folders.items()
        for name, grid in read.items()
    }
    classes = {
        name: len(image_files(path, split="train").class_names) for name, path in folders.items()
    }
    earlier = context.earlier.get("classes", {})
    return {**measure_grids(grids, context), "classes": {**earlier, **classes}}


def _on(grid: Grid, data: str, path: Path, context: Context, macs_an_image: float) -> Grid:
    """Return a grid on a data set: its classes, all its training images, its share of MACs."""
    train, test = (image_files(path, split=split) for split in ("train", "test"))
    share = _SHARES.get(data, _SHARE)
    epochs = round(grid.options.get("epochs", _EPOCHS) * share)
    macs = macs_an_image * share * (len(train) - _HELD_OUT)
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
            if name in data.get("classes", {}):
                rows.append(_row(title, name, data, theirs, place))
            elif theirs is not None:
                absent = "the images are not at hand"
                rows.append(not_run(f"{title}: {name}", theirs, ACCURACY.unit, absent))
    return rows


def _found(data: Data, title: str, name: str) -> Found:
    _, grid, method = _LINES[title]
    return find(data, f"{grid}_{name}", method=method)


def _row(title: str, name: str, data: Data, theirs: float | None, place: int) -> Row:
    """Compare with the paper only where the data has the same classes."""
    found, classes, paper = _found(data, title, name), data["classes"][name], published(_NAME)
    share = f"{100 * _SHARES.get(name, _SHARE):.3g} % of the paper's budget"
    why = [share] if _LINES[title][0] else []
    if classes == paper["classes"][place]:
        if found.runs:
            protocol = data["grids"][f"{_LINES[title][1]}_{name}"]["protocol"]
            train, every = protocol["images"] - protocol["held_out"], paper["test_images"][place]
            test = found.runs[0]["after"]["test"]["n"]
            why.append(f"{train:,} training images, {test:,} test images of {every:,}")
        return accuracy_row(f"{title}: {name}", found, theirs, why="; ".join(why))
    other = f"{classes} classes, the paper has {paper['classes'][place]}"
    return accuracy_row(f"{title}: {name}", found, None, why="; ".join([*why, other]))


def _plot(data: Data, *, ax: Any = None) -> Any:
    """Draw the accuracy of every line on every data set, and below it the published one."""
    paper, classes = published(_NAME), data.get("classes", {})
    rows = {row.what: row for row in _compare(data, paper)}
    names = list(classes) or ["small"]
    lines: dict[str, list[float | None]] = {}
    for title, (line, _, _) in _LINES.items():
        found = [rows.get(f"{title}: {name}") for name in names]
        lines[title] = [None if row is None else row.ours for row in found]
        theirs = [None if row is None else row.theirs for row in found]
        shown = "paper's method" if line == "bp_free" else title
        lines[f"published: {shown}"] = [v if isinstance(v, float | int) else None for v in theirs]
    heads = [f"{name}, {classes[name]} classes" if name in classes else name for name in names]
    return draw_sheet(lines, heads, [name for name in lines if ":" in name], ax=ax)


STUDY = Study(
    _NAME, "Table 10", "Transfer to fine-grained data sets", _measure, _compare, _plot, sweeps=True
)
