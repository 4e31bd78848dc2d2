"""Importers: files of other projects become a :class:`pmt.net.graph.Graph`."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from pmt.net.graph import Graph

__all__ = ["read"]

_PACKAGES = {".tflite": "tflite", ".onnx": "onnx", ".pkl": "tiny_training"}


def read(path: str | Path, **options: Any) -> Graph:
    """Read a network, choosing the importer by the file's suffix.

    Parameters
    ----------
    path : str or pathlib.Path
        ``.pmt`` (an image of this project), ``.tflite`` (full-integer), ``.onnx`` (int8, QDQ) or
        ``.pkl`` (tiny-training).
    **options
        Passed to the importer: :func:`pmt.formats.tiny_training.importer.read` takes ``classes``
        and ``resolution``; :func:`pmt.formats.tflite.importer.read` and
        :func:`pmt.formats.onnx.importer.read` take ``input_mean`` and ``input_std``.

    Returns
    -------
    Graph
        The network; :func:`pmt.net.image.build_image` makes its image.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the suffix is unknown or the file is damaged or not supported.
    TypeError
        If the importer has no such option.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in (".pmt", *_PACKAGES):
        raise ValueError(
            f"path={str(path)!r}: suffix {suffix!r} is unknown; "
            "readable are .pmt, .tflite, .onnx and .pkl"
        )
    if not path.is_file():
        raise FileNotFoundError(f"path={str(path)!r}: there is no such file")
    if suffix == ".pmt":
        return _read_image(path, options)
    importer: Callable[..., Graph] = import_module(f"pmt.formats.{_PACKAGES[suffix]}.importer").read
    return importer(path, **options)


def _read_image(path: Path, options: dict[str, Any]) -> Graph:
    from pmt.net.image import read_graph

    if options:
        raise TypeError(f"options {sorted(options)} are unknown for a .pmt image, which takes none")
    try:
        return read_graph(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
