"""The restricted unpickler: what it makes, what it refuses, and that nothing of a file runs."""

import os
import pickle
from typing import Any

import numpy as np
import pytest

from pmt._util.safe_pickle import PickledArray, RefusedError, array_globals, load

BYTES = array_globals({"u1": "u1", "|u1": "u1"})
NUMBERS = array_globals({"i4": "<i4", "f4": "<f4"})


class Hostile:
    """Calls a function when it is unpickled as usual."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_any_protocol_come_back(protocol, order):
    array = np.asarray(np.arange(12, dtype=np.int32).reshape(3, 4), order=order)
    found = load(pickle.dumps({"a": array}, protocol), NUMBERS)["a"]
    assert isinstance(found, PickledArray)
    assert found.array is not None
    np.testing.assert_array_equal(found.array, array)
    assert not found.array.flags.writeable


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.zeros(2, "f8"), "it holds an array of dtype 'f8' instead of int32 or float32"),
        (np.zeros(2, ">i4"), "it holds an array that is not little-endian"),
        (np.array([{}], object), "it holds an array of dtype 'O8' instead of int32 or float32"),
        (Hostile(np.ndarray, (3,)), "numpy.ndarray may only be reconstructed"),
        (Hostile(getattr, "text", "upper"), "it asks for builtins.getattr"),
        ({1, 2}, "it asks for builtins.set"),
    ],
)
def test_the_refusal_names_what_is_asked_for(value, message):
    with pytest.raises(RefusedError) as error:
        load(pickle.dumps(value, protocol=3), NUMBERS)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (b"\x80\x02}r\xff\xff\xff\x7f.", "it numbers an object 2147483647"),
        (b"(lp2147483647\n.", "it numbers an object 2147483647"),
        (
            b"\x80\x02c_codecs\nencode\n}X\x0c\x00\x00\x00__defaults__X\x01\x00\x00\x00asb.",
            "it tries to change a function",
        ),
        (
            b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x05\x00\x00\x00utf-8\x86R.",
            "it encodes text with another codec than latin1",
        ),
    ],
)
def test_programs_that_no_writer_makes_are_refused(program, message):
    with pytest.raises(RefusedError) as error:
        load(program, BYTES)
    assert str(error.value) == message


def test_nothing_of_the_file_runs(tmp_path):
    with pytest.raises(RefusedError, match=r"it asks for (posix|nt).mkdir"):
        load(pickle.dumps(Hostile(os.mkdir, str(tmp_path / "made"))), BYTES)
    assert not (tmp_path / "made").exists()


def test_instructions_can_be_limited():
    data = pickle.dumps([1, 2, 3], protocol=2)
    assert load(data, BYTES) == [1, 2, 3]
    with pytest.raises(RefusedError, match=r"^it has more than 4 instructions$"):
        load(data, BYTES, most_instructions=4)
    with pytest.raises(RefusedError, match=r"^instruction EMPTY_LIST is not allowed$"):
        load(data, BYTES, instructions=("PROTO", "STOP"))


def test_an_array_without_its_state_stays_empty():
    program = (
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R."
    )
    assert load(program, BYTES).array is None
