"""Images with a section of a stranger's making, under a right checksum."""

from pmt.model import Model
from pmt.net.image import _SECTIONS, _assemble, _open


def with_section(model: Model, name: str, payload: bytes) -> bytes:
    """Return a model's image with another section: ``metadata``, or ``names`` (NUL-terminated)."""
    sections, _ = _open(model.image())
    sections[name] = payload
    return _assemble(model.to_graph(), tuple(sections[each] for each in _SECTIONS))


def with_renamed(model: Model, old: str, new: bytes) -> bytes:
    """Return a model's image with another name for a layer or block; lengths may differ."""
    graph = model.to_graph()
    stand_in = "x" * len(new)
    for op in graph.ops:
        op.name = stand_in if op.name == old else op.name
    graph.blocks = {stand_in if k == old else k: ops for k, ops in graph.blocks.items()}
    renamed = Model.from_graph(graph)
    names = _open(renamed.image())[0]["names"]
    assert stand_in.encode() in names.split(b"\0")
    return with_section(renamed, "names", names.replace(stand_in.encode(), new))
