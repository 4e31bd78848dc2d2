"""Importers: files of other projects become a :class:`pmt.net.graph.Graph`."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from pmt._util.checks import checked_path
from pmt._util.lfs import LFS_PROBLEM, LFS_REMEDY, is_lfs_pointer
from pmt.errors import FileError, MissingFileError
from pmt.net.graph import Graph
from pmt.net.image import read_graph


class _Importer(NamedTuple):
    """The module of ``pmt.formats`` that reads a kind of file, and the options that it takes."""

    module: str
    kind: str
    options: tuple[str, ...] = ()


_IMPORTERS = {
    ".pmt": _Importer("", "a .pmt image"),
    ".tflite": _Importer("tflite.importer", "a .tflite file", ("input_mean", "input_std")),
    ".onnx": _Importer("onnx.importer", "an .onnx file", ("input_mean", "input_std")),
    ".pkl": _Importer("tiny_training", "a tiny-training .pkl", ("resolution",)),
}
SUFFIXES = tuple(_IMPORTERS)
_TORCH = (
    "torch.onnx.export(module, inputs, 'f.onnx') writes what "
    "`pmt quantize f.onnx --calibrate DIR --out f.pmt` reads"
)
_KERAS = "pmt.from_keras(keras.saving.load_model(path), images) quantizes it"
_ELSEWHERE = {
    **dict.fromkeys((".pt", ".pth", ".pt2", ".safetensors"), _TORCH),
    **dict.fromkeys((".h5", ".keras"), _KERAS),
    ".pb": "tf.lite.TFLiteConverter with full-integer quantization writes a .tflite file",
}


def read(path: str | Path, **options: Any) -> Graph:
    """Read a network by the importer of the file's suffix, which takes the options.

    A FileNotFoundError tells that there is no file, a ValueError that its suffix is unknown or that
    it is damaged or not supported, a TypeError that the importer has no such option.
    """
    path = checked_path("path", path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(
            f"path={str(path)!r}: suffix {suffix!r} is unknown; "
            f"readable are {', '.join(SUFFIXES[:-1])} and {SUFFIXES[-1]}"
            + (f"; {_ELSEWHERE[suffix]}" if suffix in _ELSEWHERE else "")
        )
    require_file(path)
    importer = _IMPORTERS[suffix]
    check_options(options, importer.kind, importer.options)
    if suffix == ".pmt":
        try:
            return read_graph(path.read_bytes())
        except ValueError as error:
            raise FileError(str(path), [str(error)]) from error
    with file_errors(path):
        graph: Graph = import_module(f"pmt.formats.{importer.module}").read(path, **options)
    return graph


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Turn an importer's ValueError that begins with the file's name into a FileError."""
    try:
        yield
    except FileError:
        raise
    except ValueError as error:
        name, text = f"{path.name}: ", str(error)
        if not text.startswith(name):  # about an option
            raise
        raise FileError(path.name, [text.removeprefix(name)]) from error


def require_file(path: Path, argument: str = "path") -> None:
    """Raise MissingFileError if there is no such file, FileError for a pointer of Git LFS."""
    if not path.is_file():
        raise MissingFileError(f"{argument}={str(path)!r}: there is no such file")
    if is_lfs_pointer(path):
        raise FileError(path.name, [f"{LFS_PROBLEM}; {LFS_REMEDY}"])


def check_options(options: Mapping[str, Any], kind: str, known: tuple[str, ...] = ()) -> None:
    """Raise TypeError if a kind of file does not take one of the options."""
    unknown = sorted(set(options) - set(known))
    if unknown:
        takes = f"; it takes {' and '.join(known)}" if known else ", which takes none"
        raise TypeError(f"options {unknown} are unknown for {kind}{takes}")
