"""Exporters: a graph becomes a file that other projects read, or plain NumPy arrays in an .npz."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt._util import atomic_file
from pmt._util.checks import checked_path
from pmt._util.text import printable
from pmt.datasets.array_files import npz_bytes
from pmt.errors import ExistingFileError
from pmt.formats.c_array import c_header
from pmt.net.graph import Graph, Op, check_is_graph
from pmt.net.image import build_image
from pmt.net.input_stage import InputStage

__all__ = ["SUFFIXES", "check_destination", "write"]

_ARRAYS = ("weights", "bias", "weight_scales")


def npz_arrays(graph: Graph) -> bytes:
    """Return a graph as an .npz file that ``numpy.load`` reads without pickles.

    Of every layer, as ``LAYER/ARRAY``: ``weights`` (int8, as in :class:`pmt.net.graph.Op`),
    ``bias`` (int32, (out,)), ``weight_scales`` and ``bias_scales`` (float32, (out,)); of the
    activations that the layer reads and writes, scalars each, ``input_scale`` and ``output_scale``
    (float32), ``input_zero_point`` and ``output_zero_point`` (int32). ``graph`` is a string of
    JSON: every field of the tensors, the ops and the graph but those arrays. Equal graphs give
    equal bytes.
    """
    names = [name for name in Op.__dataclass_fields__ if name not in _ARRAYS]
    fields = [field for field in Graph.__dataclass_fields__ if field != "stage"]
    structure = {field: getattr(graph, field) for field in fields} | {
        "tensors": [asdict(tensor) for tensor in graph.tensors],
        "ops": [{name: getattr(op, name) for name in names} for op in graph.ops],
    }
    text = json.dumps(structure, ensure_ascii=False, allow_nan=False)
    arrays: dict[str, npt.NDArray[Any]] = {"graph": np.array(text)}
    for op in graph.ops:
        if op.weights is None or op.weight_scales is None:
            continue
        source, target = graph.tensors[op.inputs[0]], graph.tensors[op.output]
        scales = op.weight_scales.astype(np.float32)
        layer: dict[str, npt.NDArray[Any]] = {
            "weights": op.weights,
            "bias": np.zeros(len(scales), np.int32) if op.bias is None else op.bias,
            "weight_scales": scales,
            "bias_scales": np.float32(source.scale) * scales,
            "input_scale": np.array(source.scale, np.float32),
            "input_zero_point": np.array(source.zero_point, np.int32),
            "output_scale": np.array(target.scale, np.float32),
            "output_zero_point": np.array(target.zero_point, np.int32),
        }
        arrays |= {f"{_member(op.name)}/{name}": values for name, values in layer.items()}
    return npz_bytes(arrays)


def _member(layer: str) -> str:
    """Return a layer's name as that of files in an archive, none of which is outside of it."""
    return re.sub(r"(?<![^/])\.\.(?![^/])|^/", lambda found: f"_{found[0]}_", printable(layer))


def _exporter(package: str) -> Any:
    return import_module(f"pmt.formats.{package}.exporter")


_WRITERS: dict[str, Callable[[Graph, str], bytes]] = {
    ".pmt": lambda graph, _: build_image(graph),
    ".tflite": lambda graph, _: _exporter("tflite").tflite_model(graph),
    ".onnx": lambda graph, _: _exporter("onnx").onnx_model(graph),
    ".npz": lambda graph, _: npz_arrays(graph),
    ".h": c_header,
}
SUFFIXES = tuple(_WRITERS)
_IMAGES = (".pmt", ".h")  # hold a whole image


def write(graph: Graph, path: str | Path, *, into: str | Path | None = None) -> int:
    """Write a network, choosing the format by the file's suffix.

    Parameters
    ----------
    graph : Graph
        The network.
    path : str or pathlib.Path
        ``.pmt`` (an image of this project), ``.tflite`` (full-integer), ``.onnx`` (QDQ), ``.npz``
        (NumPy arrays) or ``.h`` (the image as a C array). A file that exists is replaced in one
        step.
    into : str or pathlib.Path, optional
        The ``.tflite`` file that the network was imported from: ``path`` becomes a copy of it with
        the network's weights and biases, and every other byte as it was.

    Returns
    -------
    int
        Bytes written.

    Raises
    ------
    ValueError
        If the suffix is unknown, the graph contradicts itself, its metadata is not JSON, it does
        not come from ``into``, or it has filters before the network and the format has none.
    ImportError
        If the format's package is missing.
    OSError
        If the file cannot be written; what was there is unchanged.
    """
    check_is_graph(graph)
    path = checked_path("path", path)
    check_destination(path, replace=True)
    build_image(graph)  # whatever the format: what is not a model of pmt is refused here
    if into is not None or path.suffix.lower() not in _IMAGES:
        graph = _without_stage(graph, path)
    if into is None:
        content = _WRITERS[path.suffix.lower()](graph, path.name)
    else:
        from pmt.formats.tflite.export_in_place import tflite_with_weights

        if path.suffix.lower() != ".tflite":
            raise ValueError(
                f"path={str(path)!r}: into={str(into)!r} writes a .tflite file; change the suffix"
            )
        content = tflite_with_weights(graph, Path(into))
    atomic_file.write_bytes(path, content)
    return len(content)


def _without_stage(graph: Graph, path: Path) -> Graph:
    """Return a graph for a file that holds no input stage; one that only resizes is left out."""
    if graph.stage is not None and graph.stage.filters:
        raise ValueError(
            f"path={str(path)!r}: only a .pmt image holds filters before the network "
            f"({graph.stage}); write a .pmt or .h file, or train and align without them "
            "(--preparation align+head, --no-input)"
        )
    return replace(graph, stage=None)


def note_on_filters(stage: InputStage | None, remedy: str) -> list[str]:
    """Return, as one line or none, which files hold a model's filters, and a remedy for others."""
    if stage is None or not stage.filters:
        return []
    held = f"only .pmt and .h files hold the filters ({stage})"
    return [f"{held}; for other formats {remedy}"]


def check_destination(path: str | Path, *, replace: bool) -> None:
    """Check that a network can be written to a path, before any work is done.

    Parameters
    ----------
    path : str or pathlib.Path
        File that :func:`write` is to write.
    replace : bool
        Whether a file may be there.

    Raises
    ------
    ValueError
        If the suffix is unknown.
    FileNotFoundError, NotADirectoryError, IsADirectoryError, FileExistsError
        If the folder is missing, or something is there that may not be replaced.
    """
    path = checked_path("path", path)
    if path.suffix.lower() not in SUFFIXES:
        known = ", ".join(SUFFIXES[:-1])
        raise ValueError(
            f"path={str(path)!r}: suffix {path.suffix!r} is unknown; a model is written as "
            f"{known} or {SUFFIXES[-1]}"
        )
    folder = path.absolute().parent
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"path={str(path)!r}: {folder} is a file; choose a folder")
    if not folder.is_dir():
        raise FileNotFoundError(
            f"path={str(path)!r}: the folder {folder} does not exist; create it"
        )
    if path.is_dir():
        raise IsADirectoryError(f"path={str(path)!r} is a folder; give a file's name")
    if path.exists() and not replace:
        raise ExistingFileError(f"path={str(path)!r} exists; choose another name, or add --force")
