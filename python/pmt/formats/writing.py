"""Exporters: a :class:`pmt.net.graph.Graph` becomes a file that other projects read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pmt._util import atomic_file
from pmt.net.graph import Graph
from pmt.net.image import build_image

__all__ = ["SUFFIXES", "check_destination", "write"]


def _pmt(graph: Graph, path: Path) -> bytes:
    return build_image(graph)


def _tflite(graph: Graph, path: Path) -> bytes:
    from pmt.formats.tflite.exporter import tflite_model

    return tflite_model(graph)


def _onnx(graph: Graph, path: Path) -> bytes:
    from pmt.formats.onnx.exporter import onnx_model

    return onnx_model(graph)


def _npz(graph: Graph, path: Path) -> bytes:
    from pmt.formats.npz import npz_arrays

    return npz_arrays(graph)


def _header(graph: Graph, path: Path) -> bytes:
    from pmt.formats.c_array import c_header

    return c_header(graph, path.name)


def _source(graph: Graph, path: Path) -> bytes:
    from pmt.formats.c_array import c_source

    return c_source(graph, path.name)


_WRITERS: dict[str, Callable[[Graph, Path], bytes]] = {
    ".pmt": _pmt,
    ".tflite": _tflite,
    ".onnx": _onnx,
    ".npz": _npz,
    ".h": _header,
    ".c": _source,
}
SUFFIXES = tuple(_WRITERS)


def write(graph: Graph, path: str | Path, *, into: str | Path | None = None) -> int:
    """Write a network, choosing the format by the file's suffix.

    Parameters
    ----------
    graph : Graph
        The network.
    path : str or pathlib.Path
        ``.pmt`` (an image of this project), ``.tflite`` (full-integer), ``.onnx`` (QDQ), ``.npz``
        (NumPy arrays), ``.h`` or ``.c`` (the image as a C array). A file that exists is replaced in
        one step.
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
        If the suffix is unknown, the graph contradicts itself, its metadata is not JSON, or it does
        not come from ``into``.
    ImportError
        If the format's package is missing.
    OSError
        If the file cannot be written; what was there is unchanged.
    """
    path = Path(path)
    check_destination(path, replace=True)
    build_image(graph)  # whatever the format: what is not a model of pmt is refused here
    if into is None:
        content = _WRITERS[path.suffix.lower()](graph, path)
    else:
        from pmt.formats.tflite.export_in_place import tflite_with_weights

        if path.suffix.lower() != ".tflite":
            raise ValueError(
                f"path={str(path)!r}: into={str(into)!r} writes a .tflite file; change the suffix"
            )
        content = tflite_with_weights(graph, Path(into))
    atomic_file.write_bytes(path, content)
    return len(content)


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
    path = Path(path)
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
        raise FileExistsError(f"path={str(path)!r} exists; choose another name, or add --force")
