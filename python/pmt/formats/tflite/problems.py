"""What a ``.tflite`` file has that cannot be imported, collected so that one error names it all."""

from __future__ import annotations

from itertools import pairwise

__all__ = ["CONVERT_INT8", "Problems", "Unsupported"]

CONVERT_INT8 = (
    "convert the float model again with full-integer int8 quantisation: a representative_dataset "
    "and supported_ops = [TFLITE_BUILTINS_INT8]"
)


class Unsupported(Exception):
    """Why one operator cannot be imported, and what the user can do about it."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason} ({remedy})")


class Problems:
    """Problems and the operators that have them; equal problems are named once."""

    def __init__(self) -> None:
        self._operators: dict[str, list[tuple[int, str]]] = {}

    def __bool__(self) -> bool:
        return bool(self._operators)

    def add(self, problem: Unsupported, number: int = -1, kind: str = "") -> None:
        """Note a problem of operator ``number``, or of the file as a whole."""
        operators = self._operators.setdefault(str(problem), [])
        if number >= 0:
            operators.append((number, kind))

    def message(self, source: str) -> str:
        """Return the one message about the file ``source``."""
        count = len(self._operators)
        things = "1 thing is" if count == 1 else f"{count} things are"
        return f"{source}: {things} not supported: " + "; ".join(
            f"{_place(operators)}{text}" for text, operators in self._operators.items()
        )


def _place(operators: list[tuple[int, str]]) -> str:
    if not operators:
        return ""
    if len(operators) == 1:
        return f"op {operators[0][0]} {operators[0][1]}: "
    kinds = ", ".join(sorted({kind for _, kind in operators}))
    return f"ops {_ranges(sorted(number for number, _ in operators))} ({kinds}): "


def _ranges(numbers: list[int]) -> str:
    """Return ``1-3, 5`` for 1, 2, 3, 5."""
    breaks = [i + 1 for i, (a, b) in enumerate(pairwise(numbers)) if b != a + 1]
    runs = [numbers[a:b] for a, b in pairwise([0, *breaks, len(numbers)])]
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
