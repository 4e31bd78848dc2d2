"""Read a model from a file of any supported format, or the bundled one by its name."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

from pmt import formats
from pmt.formats.reading import check_options
from pmt.model.model import Model

__all__ = ["BUNDLED_MODELS", "load"]

BUNDLED_MODELS = ("fashion_mnist_dscnn", "cifar10_mcunet", "cifar10_small")


def load(path: str | Path, **options: Any) -> Model:
    """Load a model.

    Parameters
    ----------
    path : str or pathlib.Path
        A ``.pmt``, ``.tflite`` (full-integer), ``.onnx`` (int8, QDQ) or ``.pkl`` (tiny-training)
        file, a card that a board has trained with (``card.img``, see
        :func:`pmt.firmware.export.read_card`), a run folder (its checkpoint is read), or the name
        of a bundled model:
        ``"fashion_mnist_dscnn"``, ``"cifar10_mcunet"`` or ``"cifar10_small"``.
    **options
        Options of the importer: ``classes`` and ``resolution`` of a ``.pkl``, ``input_mean`` and
        ``input_std`` of a ``.tflite`` or ``.onnx``.

    Returns
    -------
    Model
        The network.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is damaged, unknown or holds what pmt does not support.
    TypeError
        If an option is unknown for this kind of file.
    """
    if str(path) in BUNDLED_MODELS:
        check_options(options, f"the bundled model {str(path)!r}")
        return Model((resources.files("pmt") / "data" / f"{path}.pmt").read_bytes())
    path = Path(path)
    if path.is_dir():
        path = path / "checkpoint.pmt"
        if not path.is_file():
            raise FileNotFoundError(
                f"path={str(path.parent)!r}: the folder holds no checkpoint.pmt; give a model "
                "file or the folder of a run"
            )
    if path.suffix.lower() == ".img":
        from pmt.model.card_reader import newest_model

        check_options(options, "a card")
        return newest_model(path)
    if path.suffix.lower() == ".pmt" and path.is_file():
        check_options(options, "a .pmt image")
        try:
            return Model(path.read_bytes())
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
    graph = formats.read(path, **options)
    try:
        return Model.from_graph(graph)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
