"""manifest.json: what a folder of corrupted arrays was made from, and with which seed."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from pmt._util import atomic_file
from pmt._util.parsing import parse_json
from pmt.datasets.damage import damaged, read_bytes

FILE_NAME = "manifest.json"
REMEDY = "delete the folder and make it again with `pmt corrupt`"


@dataclass(frozen=True)
class CorruptionManifest:
    """What decides the bytes of every array in the folder.

    Parameters
    ----------
    data
        Name of the clean data set.
    split
        "train" or "test".
    seed
        The seed that the user chose; see :func:`pmt.corruptions.split_seed`.
    constants
        Whose constants: "cifar10" or "imagenet".
    images
        Number of images, N; every array has 5 N.
    shape
        Height, width and channels.
    data_crc32
        See :func:`pmt.datasets.checksum.checksum`.
    class_names
        In the order of the labels.
    """

    data: str
    split: str
    seed: int
    constants: str
    images: int
    shape: tuple[int, int, int]
    data_crc32: int
    class_names: tuple[str, ...]

    def differences(self, other: CorruptionManifest) -> list[str]:
        """List what differs in this one (in the folder) from `other` (asked for)."""
        there, here = asdict(self), asdict(other)
        found = [
            f"{name} is {there[name]!r} there, {here[name]!r} here"
            for name in ("data", "split", "seed", "constants", "images", "shape")
            if there[name] != here[name]
        ]
        if not found and self.data_crc32 != other.data_crc32:
            found.append("its clean images or labels were others")
        if not found and self.class_names != other.class_names:
            found.append("its class names were others")
        return found

    def write(self, folder: Path) -> None:
        """Write it into `folder`, whole or not at all."""
        atomic_file.write_text(folder / FILE_NAME, json.dumps(asdict(self), indent=1) + "\n")


def read_manifest(folder: Path) -> CorruptionManifest | None:
    """Read the manifest of a folder; None where there is none, as in the published ones.

    Raises
    ------
    ValueError
        The file is damaged.
    """
    path = folder / FILE_NAME
    if not path.is_file():
        return None
    content = parse_json(read_bytes(path), path, REMEDY)
    try:
        manifest = CorruptionManifest(
            **{
                **content,
                "shape": tuple(content["shape"]),
                "class_names": tuple(content["class_names"]),
            }
        )
    except (ValueError, TypeError, KeyError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise damaged(path, f"not a manifest ({reason})", REMEDY) from None
    _check(path, manifest)
    return manifest


def _check(path: Path, manifest: CorruptionManifest) -> None:
    texts = (manifest.data, manifest.split, manifest.constants, *manifest.class_names)
    numbers = (manifest.seed, manifest.images, manifest.data_crc32, *manifest.shape)
    if not all(isinstance(text, str) for text in texts) or not manifest.class_names:
        raise damaged(path, "not a manifest (text is something else)", REMEDY)
    names = manifest.class_names
    if len(set(names)) != len(names) or not all(name.strip() for name in names):
        raise damaged(path, "not a manifest (class_names holds a name twice or a blank)", REMEDY)
    if not all(type(number) is int for number in numbers) or len(manifest.shape) != 3:
        raise damaged(path, "not a manifest (a number is not whole)", REMEDY)
