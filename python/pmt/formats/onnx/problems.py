"""What an ONNX file has that cannot be imported, collected so that one error names it all."""

from __future__ import annotations

__all__ = ["Problems", "Unsupported"]

_NAMED = 3


class Unsupported(Exception):
    """Why one node cannot be imported, and what the user can do about it."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}: {remedy}")


class Problems:
    """Problems and the nodes that have them; equal problems of equal ops are named once."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[str, str], list[str]] = {}

    def __bool__(self) -> bool:
        return bool(self._nodes)

    def add(self, problem: Unsupported | str, kind: str = "", node: str = "") -> None:
        """Note a problem of the node ``node`` of op ``kind``, or of the file as a whole."""
        self._nodes.setdefault((kind, str(problem)), []).append(node)

    def message(self, source: str) -> str:
        """Return the one message about the file ``source``."""
        count = len(self._nodes)
        things = "1 thing is" if count == 1 else f"{count} things are"
        lines = [f"- {_place(kind, nodes)}{text}" for (kind, text), nodes in self._nodes.items()]
        return f"{source}: {things} not supported:\n" + "\n".join(lines)


def _place(kind: str, nodes: list[str]) -> str:
    if not kind:
        return ""
    named = ", ".join(repr(name[:80]) for name in nodes[:_NAMED])
    more = f" and {len(nodes) - _NAMED} more" if len(nodes) > _NAMED else ""
    return f"node {named}{more} ({kind}): "
