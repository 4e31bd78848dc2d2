"""The parts of the core that a firmware links: ops of its model, estimators of its options."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pmt import _core

LINKED_NAME = "core/base/linked_parts.hpp"
# Bytes of flash at -O2 that a part takes at least, by its bit. ``make`` of an export whose header
# misses one bit gives them.
_SIZES: dict[str, dict[int, int]] = {
    "ops": {2: 3000, 4: 800, 5: 1200, 6: 1050, 7: 950, 8: 300, 9: 100, 10: 500},
    "depthwise_sides": {3: 1200, 5: 1400, 7: 1400},
    "estimators": {0: 3400, 1: 150, 2: 1000, 3: 800},
    "losses": {1: 500, 2: 750, 3: 850},
    "generators": {1: 1500},
}


@dataclass(frozen=True)
class LinkedParts:
    """Parts that are linked."""

    bits: dict[str, int]  # of each set of `cpp/core/base/linked_parts.hpp` the bits of its parts
    input_stage: bool = True  # whether the model has filters before the network
    # Whether a learner chooses them; whether it learns; keeps activations; aligns windows.
    input_search: bool = False
    learning: bool = False
    kept_activations: bool = False
    windows: bool = False

    def header(self) -> bytes:
        """Return the file of the core that lists the parts."""
        lines = [f"constexpr uint32_t {name} = {bits:#x};" for name, bits in self.bits.items()]
        for name in ("input_stage", "input_search", "learning", "kept_activations", "windows"):
            lines.append(f"constexpr bool {name} = {str(getattr(self, name)).lower()};")
        body = "\n".join(lines)
        return (
            "// The parts that are linked: those that this model and its options use.\n"
            f"#pragma once\n\n#include <cstdint>\n\nnamespace pmt::linked {{\n\n{body}\n\n"
            "}  // namespace pmt::linked\n"
        ).encode()

    def saved_bytes(self) -> int:
        """Return the bytes of flash that the parts take which are not linked, at least."""
        return sum(
            size
            for name, sizes in _SIZES.items()
            for bit, size in sizes.items()
            if not self.bits[name] >> bit & 1
        )


def linked_parts(
    model: _core.Model,
    trainings: Iterable[tuple[_core.Options, Sequence[int]]],
    *,
    input_search: bool = False,
    learning: bool = False,
    kept_activations: bool = False,
    windows: bool = False,
) -> LinkedParts:
    """Return the parts that a model and trainings of layers use.

    Trainings are options and the ops of their layers; none for firmware that trains nothing. The
    flags are those of :class:`LinkedParts`.
    """
    bits = {"estimators": 0, "losses": 0, "generators": 0, **_core.parts_of_model(model)}
    for options, layers in trainings:
        for name, found in _core.parts_of_training(model, options, layers).items():
            bits[name] |= found
    stage = bool(model.stage())
    return LinkedParts(bits, stage, input_search, learning, kept_activations, windows)
