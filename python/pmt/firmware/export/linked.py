"""The parts of the core that a firmware links: ops of its model, estimators of its options."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pmt import _core

LINKED = "core/base/linked"
# Bytes of flash at -O2 that a part takes at least, by its bit. ``make`` of an export whose headers
# miss one bit gives them.
_SIZES: dict[str, dict[int, int]] = {
    "ops": {2: 3000, 4: 800, 5: 1200, 6: 1050, 7: 950, 8: 300, 9: 100, 10: 500},
    "depthwise_sides": {3: 1200, 5: 1400, 7: 1400},
    "estimators": {0: 3400, 1: 150, 2: 1000, 3: 800},
    "losses": {1: 500, 2: 750, 3: 850},
    "generators": {1: 1500},
}
NO_LEARNER = dict.fromkeys(
    ("input_search", "learning", "kept_activations", "windows", "reliability"), False
)


@dataclass(frozen=True)
class LinkedParts:
    """Parts that are linked."""

    bits: dict[str, int]  # of each set in `cpp/core/base/linked` the bits of its parts
    flags: dict[str, bool]  # of each other part there whether it is linked

    def headers(self) -> dict[str, bytes]:
        """Return the files of the core that list the parts, by name: a file for each set or part.

        So ccache, and a rebuild, compile anew what another model or other options change, and
        not most of the core.
        """
        sets = {name: f"uint32_t {name} = {bits:#x}" for name, bits in self.bits.items()}
        parts = {name: f"bool {name} = {str(flag).lower()}" for name, flag in self.flags.items()}
        return {f"{LINKED}/{name}.hpp": _header(line) for name, line in (sets | parts).items()}

    def saved_bytes(self) -> int:
        """Return the bytes of flash that the parts take which are not linked, at least."""
        return sum(
            size
            for name, sizes in _SIZES.items()
            for bit, size in sizes.items()
            if not self.bits[name] >> bit & 1
        )


def _header(constant: str) -> bytes:
    return (
        "// The parts that this model and its options use are linked.\n#pragma once\n\n"
        f"#include <cstdint>\n\nnamespace pmt::linked {{\nconstexpr {constant};\n}}\n"
    ).encode()


def linked_parts(
    model: _core.Model,
    trainings: Iterable[tuple[_core.Options, Sequence[int]]],
    learner: Mapping[str, bool] = NO_LEARNER,
) -> LinkedParts:
    """Return the parts that a model, trainings of layers, and a learner use.

    Trainings are options and the ops of their layers; none for firmware that trains nothing.
    """
    bits = {"estimators": 0, "losses": 0, "generators": 0, **_core.parts_of_model(model)}
    for options, layers in trainings:
        for name, found in _core.parts_of_training(model, options, layers).items():
            bits[name] |= found
    return LinkedParts(bits, {"input_stage": bool(model.stage()), **learner})
