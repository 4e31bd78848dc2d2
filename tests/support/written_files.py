"""Readers of written files that no importer reads: arrays and C sources."""

import json
import re
from pathlib import Path

import numpy as np

from pmt.net.graph import Graph, Op, Tensor
from pmt.net.image import read_graph


def graph_of_arrays(path: Path) -> Graph:
    """Rebuild a graph from the arrays of an .npz file, as its documentation says."""
    with np.load(path) as file:
        arrays = dict(file)
    structure = json.loads(str(arrays["graph"]))
    ops = []
    for fields in structure["ops"]:
        for name, value in fields.items():
            fields[name] = tuple(value) if isinstance(value, list) else value
        key = fields["name"] + "/"
        layer = {
            name: arrays[key + name]
            for name in ("weights", "bias", "weight_scales")
            if key + name in arrays
        }
        ops.append(Op(**fields, **layer))
    return Graph(
        [Tensor(**fields) for fields in structure["tensors"]],
        ops,
        structure["input"],
        structure["output"],
        tuple(structure["input_mean"]),
        tuple(structure["input_std"]),
        structure["blocks"],
        structure["metadata"],
    )


def graph_of_c(path: Path) -> Graph:
    """Read the image between the braces of a C array."""
    array = path.read_text().rpartition("] = {")[2].partition("};")[0]
    return read_graph(bytes(int(byte, 16) for byte in re.findall(r"0x(..),", array)))
