"""The rule of fuzzing, on seeds, on some hundred mutations of each, and on all findings so far."""

from pathlib import Path

import numpy as np
import pytest
from fuzz.targets import TARGETS, check

FINDINGS = sorted((Path(__file__).parents[1] / "fuzz" / "findings").glob("*-*"))
MUTATIONS = 300


def mutated(data: bytes, random: np.random.Generator) -> bytes:
    """Flip, overwrite, cut out or repeat some bytes."""
    result = bytearray(data)
    for _ in range(random.integers(1, 5)):
        at = int(random.integers(0, len(result) + 1))
        length = int(random.integers(1, 9))
        kind = random.integers(0, 4)
        if kind == 0 and at < len(result):
            result[at] ^= 1 << int(random.integers(0, 8))
        elif kind == 1:
            word = [b"\0" * length, b"\xff" * length, random.bytes(length)][random.integers(0, 3)]
            result[at : at + length] = word
        elif kind == 2:
            del result[at : at + length]
        else:
            result[at:at] = result[at : at + length]
    return bytes(result)


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_are_accepted_and_mutations_are_accepted_or_refused_clearly(name, tmp_path):
    target = TARGETS[name]
    random = np.random.default_rng(7)
    seeds = target.seeds()
    for seed in seeds:
        assert check(target, tmp_path, seed)
    refused = 0
    for number in range(MUTATIONS):
        refused += not check(target, tmp_path, mutated(seeds[number % len(seeds)], random))
    assert refused > 0


HOSTILE = {
    "nothing": b"",
    "one_byte": b"\x80",
    "zeros": bytes(4096),
    "ones": b"\xff" * 4096,
    "brackets": b"[" * 100_000,
    "braces": b'{"a":' * 100_000,
    "nested_toml": b"a = " + b"[" * 100_000,
    "infinite": b'{"a": 1e999, "b": [-1e999, NaN]}',
    "huge": b'{"version": 1' + b"0" * 10_000 + b"}",
    "latin1": b'{"name": "caf\xe9"}',
    "surrogate": b'{"name": "\\ud800"}',
    "list": b"[1, 2]",
    "number": b"1",
    "object": b"{}",
}


@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.parametrize("name", TARGETS)
def test_texts_that_attackers_write_are_accepted_or_refused_clearly(name, case, tmp_path):
    check(TARGETS[name], tmp_path, HOSTILE[case])


@pytest.mark.parametrize("path", FINDINGS, ids=lambda path: path.name)
def test_what_fuzzing_once_found(path, tmp_path):
    check(TARGETS[path.name.split("-")[0]], tmp_path, path.read_bytes())
