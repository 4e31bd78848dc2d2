"""Model files: load a model of any supported format, convert it to any other."""

import logging
import os
import zlib
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from pmt import formats
from pmt._util.checks import checked_flag, checked_path, kind_of, warn_of_argument
from pmt._util.text import did_you_mean, nearest
from pmt.errors import FileError, MissingFileError, OptionWarning
from pmt.formats.reading import check_options, require_file
from pmt.model.card import newest_model
from pmt.model.model import Model
from pmt.net.graph import Graph, Tensor, with_new_head
from pmt.net.image import MAGIC
from pmt.net.pixels import input_formula, real_pixels

BUNDLED_MODELS = ("fashion_mnist_dscnn", "cifar10_mcunet", "cifar10_small")
_OTHER_NETWORKS = {
    "torch": "pmt.from_torch(module, images) quantizes a network of torch",
    "keras": "pmt.from_keras(model, images) quantizes a network of Keras",
}
# Files of a run folder; here, as models are loaded without what trains them.
BEST, CHECKPOINT, DONE = "best.pmt", "checkpoint.pmt", "DONE"
_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())


def list_models() -> tuple[str, ...]:
    """Return the names of the models that come with pmt, for :func:`pmt.load`."""
    return BUNDLED_MODELS


def load(path: str | os.PathLike[str], *, classes: int | None = None, **options: Any) -> Model:
    """Load a model.

    Parameters
    ----------
    path : str, pathlib.Path or RunFolder
        A ``.pmt``, ``.tflite`` (full-integer), ``.onnx`` (int8, QDQ) or ``.pkl`` (tiny-training)
        file, a card that a board has trained with (``card.img``, see
        :func:`pmt.firmware.export.read_card`), a run folder (of a finished run the state that was
        kept, else the checkpoint), or the name of a bundled model:
        ``"fashion_mnist_dscnn"``, ``"cifar10_mcunet"`` or ``"cifar10_small"``.
    classes : int, optional
        Replace the last layer with a new one of that number of classes, whose logits are all 0
        until it is trained. Training gives the model the class names of its data. 1 gives one
        output, for ``loss="squared_error"`` (a number) or ``"binary_cross_entropy"`` (label 0 or
        1, by its sign). By default the layer stays.
    **options
        Options of the importer: ``resolution`` of a ``.pkl``, ``input_mean`` and ``input_std`` of a
        ``.tflite`` or ``.onnx``, whose real input is (pixel - mean) / std. Without them they are
        read from the range of the input; a warning says where that fits no usual ones.

    Returns
    -------
    Model
        The network.

    Raises
    ------
    pmt.errors.MissingFileError
        If there is no such file.
    pmt.errors.FileError
        If the file is damaged or holds what pmt does not support.
    ValueError
        If the suffix is unknown, ``classes`` is out of range or the network does not end in a layer
        that gives logits.
    TypeError
        If ``path`` is neither text nor a path, or an option is unknown for this kind of file.
    """
    for name in options:
        if nearest(name, ["classes"]):
            raise TypeError(f"option {name!r} is unknown{did_you_mean(name, ['classes'])}")
    model = _load(path, options)
    if classes is None:
        return model
    return Model.from_graph(with_new_head(model.to_graph(), classes))


def _load(path: str | os.PathLike[str], options: dict[str, Any]) -> Model:
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(
            f"path={kind_of(path)} must be text or a path: a model file, the folder of a run, or "
            f"the name of a bundled model{network_remedy(path)}"
        )
    checked_path("path", path)
    if str(path) in BUNDLED_MODELS:
        check_options(options, f"the bundled model {str(path)!r}", ("classes",))
        return Model((resources.files("pmt") / "data" / f"{path}.pmt").read_bytes())
    path = Path(path)
    _refuse_unknown_name(path)
    if path.is_dir():
        path = run_model(path)
        if not path.is_file():
            raise MissingFileError(
                f"path={str(path.parent)!r}: the folder holds no {CHECKPOINT}; give a model "
                "file or the folder of a run"
            )
        _log.info("%s is loaded", path)
    if path.suffix.lower() == ".img":
        check_options(options, "a card", ("classes",))
        require_file(path)
        return newest_model(path)
    if path.suffix.lower() == ".pmt" and path.is_file():
        check_options(options, "a .pmt image", ("classes",))
        require_file(path)
        image = path.read_bytes()
        if not image.startswith(MAGIC):  # before the core misses the rest of a short file
            raise FileError(str(path), ["not a .pmt image; give a file that pmt wrote"])
        try:
            return Model(image)
        except ValueError as error:
            raise FileError(str(path), [str(error)]) from error
    graph = formats.read(path, **options)
    if graph.pixels_assumed:
        _warn_of_pixels(graph, path.name)
    try:
        return Model.from_graph(graph)
    except ValueError as error:
        raise FileError(str(path), [str(error)]) from error


def network_remedy(network: object) -> str:
    """Return how a network of another library gets in; empty for anything else."""
    libraries = {kind.__module__.partition(".")[0] for kind in type(network).__mro__}
    found = [remedy for library, remedy in _OTHER_NETWORKS.items() if library in libraries]
    return f"; {found[0]}" if found else ""


def _warn_of_pixels(graph: Graph, source: str) -> None:
    given = ("input_mean", ", ", "input_std")
    what = (
        f": {source} does not say what pixels it was trained on; 0..255 are read as "
        f"{real_pixels(graph)} ({input_formula(graph)}); give the mean and std of its training, in "
        "units of a 0..255 pixel"
    )
    warn_of_argument(OptionWarning(*given, what))


def run_model(folder: Path) -> Path:
    """Return the model of a run folder: the best state of a finished run, if it was kept."""
    best, done = folder / BEST, folder / DONE
    if not done.is_file():
        return folder / CHECKPOINT
    if not best.is_file() and done.read_text(errors="replace").strip() == BEST:
        raise MissingFileError(
            f"{folder}: {BEST}, the model that the run kept, is not there; restore it, or give "
            f"{folder / CHECKPOINT}, its last state"
        )
    return best if best.is_file() else folder / CHECKPOINT


def _refuse_unknown_name(path: Path) -> None:
    """Raise FileNotFoundError where a name without suffix, so meant for no file, is not there.

    That of ``lr0.5`` is none.
    """
    if path.suffix[1:2].isalpha() or path.exists():
        return
    known = did_you_mean(str(path), BUNDLED_MODELS, "give a file, a run folder, or one of")
    raise MissingFileError(
        f"path={str(path)!r}: there is no such file, run folder or bundled model{known}"
    )


class ConvertedFile(NamedTuple):
    """A file that was written.

    Attributes
    ----------
    path : pathlib.Path
        The file.
    size : int
        Its bytes.
    into : str or None
        The file whose weights were replaced.
    input, output : Tensor
        First and last tensor of the network.
    input_formula : str
        Formula that turns pixels into the input.
    """

    path: Path
    size: int
    into: str | None
    input: Tensor
    output: Tensor
    input_formula: str

    @property
    def format(self) -> str:
        """Suffix of the file, in lower case and without its dot."""
        return self.path.suffix.lower()[1:]

    def to_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return {
            "path": str(self.path),
            "format": self.format,
            "bytes": self.size,
            "crc32": f"{zlib.crc32(self.path.read_bytes()):08x}",
            "into": self.into,
            "input": _end(self.input),
            "output": _end(self.output),
            "input_formula": self.input_formula,
        }


def _end(tensor: Tensor) -> dict[str, Any]:
    return {
        "shape": [tensor.height, tensor.width, tensor.channels],
        "scale": tensor.scale,
        "zero_point": tensor.zero_point,
    }


def convert(
    model: str | Path,
    out: str | Path,
    *,
    into: str | None = None,
    replace: bool = False,
    **options: Any,
) -> ConvertedFile:
    """Write a model, or the trained model of a run or a card, in the format of a suffix.

    Parameters
    ----------
    model : str or pathlib.Path
        Model file, run folder, card or bundled name, see :func:`pmt.load`.
    out : str or pathlib.Path
        File to write: ``.tflite``, ``.onnx``, ``.npz``, ``.h`` or ``.pmt``.
    into : str, optional
        The ``.tflite`` that the model was imported from: ``out`` is a copy of it with the model's
        weights and biases.
    replace : bool
        Replace ``out`` if it exists.
    **options
        Options of the importer.

    Returns
    -------
    ConvertedFile
        What was written.

    Raises
    ------
    FileNotFoundError, ValueError, TypeError
        As :func:`pmt.load`; or if the format is unknown or cannot hold the model.
    FileExistsError
        If ``out`` exists and is not to be replaced.
    ImportError
        If the format needs a package that is missing.
    """
    checked_path("out", out)
    checked_flag("replace", replace)
    formats.check_destination(out, replace=replace)
    graph = load(model, **options).to_graph()
    size = formats.write(graph, out, into=into)
    first, last = graph.tensors[graph.input], graph.tensors[graph.output]
    return ConvertedFile(Path(out), size, into, first, last, input_formula(graph))
