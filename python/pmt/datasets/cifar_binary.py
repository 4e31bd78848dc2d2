"""CIFAR in its official binary layout: records of label bytes and 3,072 pixel bytes.

CIFAR-10 has one label byte; CIFAR-100 two, first the coarse one, then the fine one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pmt.datasets.cifar_frame import PIXELS, Archive, Batch, LabelKind, Variety, check_labels
from pmt.datasets.damage import damaged, read_bytes


def _read_batch(path: Path, variety: Variety, kind: LabelKind) -> Batch:
    remedy = variety.remedy("binary")
    record = variety.label_bytes + PIXELS
    data = read_bytes(path)
    if not data or len(data) % record:
        raise damaged(
            path,
            f"has {len(data)} bytes, not a multiple of the record's {record}: truncated or not a "
            f"{variety.title} file",
            remedy,
        )
    records = np.frombuffer(data, np.uint8).reshape(-1, record)
    check_labels(path, records[:, kind.byte], kind, remedy)
    return records[:, kind.byte].astype(np.int64), records[:, variety.label_bytes :]


def _read_names(folder: Path, variety: Variety, kind: LabelKind) -> tuple[str, ...] | None:
    path = folder / kind.names_text
    if not path.is_file():
        return None
    lines = read_bytes(path).decode("utf-8", errors="replace").split("\n")
    names = tuple(line.strip() for line in lines if line.strip())
    count = len(kind.class_names)
    if len(names) != count or len(set(names)) != count:
        raise damaged(
            path,
            f"names {len(set(names))} classes instead of {count}",
            f"{variety.remedy('binary')} or delete this file",
        )
    return names


BINARY = Archive("binary", ".bin", _read_batch, _read_names)
