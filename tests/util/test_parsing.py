"""Untrusted JSON, TOML and pickles: read, or refused in one line; nothing of a file runs."""

import json
import math
import os
import pickle
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmt._util.parsing import parse_json, parse_plain_toml, parse_toml, toml_line
from pmt._util.safe_pickle import PickledArray, RefusedError, array_globals, load

REFUSED = {
    "cut": ('{"a": ', "is not valid JSON: Expecting value: line 1 column 7 (char 6)"),
    "nested": ("[" * 100_000, "is not valid JSON: it is nested more than 64 deep"),
    "nested_whole": ("[" * 65 + "]" * 65, "is not valid JSON: it is nested more than 64 deep"),
    "infinite": ("[1e999]", "is not valid JSON: inf is not a finite number"),
    "nan": ('{"loss": NaN}', "is not valid JSON: nan is not a finite number"),
    "huge": ("1" + "0" * 20, "is not valid JSON: an integer has more than 64 bits"),
    "latin1": (b'"caf\xe9"', "is not UTF-8 text"),
    "surrogate": ('["\\ud800"]', "is not UTF-8 text"),
    "surrogate_key": ('{"\\ud800": 1}', "is not UTF-8 text"),
}
REFUSED_TOML = {
    "cut": ("[data", "is not valid TOML: "),
    "nested": ("a = " + "[" * 100_000, "it is nested more than 64 deep; "),
    "nested_whole": ("a = " + "[" * 64 + "]" * 64, "it is nested more than 64 deep; "),
    "infinite": ("a = inf", "is not valid TOML: inf is not a finite number; "),
    "overflow": ("a = 1e999", "is not valid TOML: inf is not a finite number; "),
    "huge": (f"a = {2**64}", "is not valid TOML: an integer has more than 64 bits; "),
    "latin1": (b'a = "caf\xe9"', "is not UTF-8 text; "),
}


def refusal(parse, *arguments) -> str:
    """Return the text of the one error that may come; empty where the text is read."""
    try:
        parse(*arguments)
    except Exception as error:
        return str(error) if type(error) is ValueError else repr(error)
    return ""


@pytest.mark.parametrize("case", REFUSED)
def test_json_that_no_reader_can_use_is_refused_in_one_line(case):
    text, message = REFUSED[case]
    found = refusal(parse_json, text, "a/b.json", "download it again")
    assert found == f"a/b.json: {message}; download it again"


@pytest.mark.parametrize("case", REFUSED_TOML)
def test_toml_that_no_reader_can_use_is_refused_in_one_line(case):
    text, message = REFUSED_TOML[case]
    found = refusal(parse_toml, text, "a/b.toml")
    assert found.startswith("a/b.toml: is not ")
    assert message in found
    assert found.endswith("; correct it")


def test_the_largest_that_is_read():
    assert parse_json("[" * 64 + "]" * 64, "x") is not None
    assert parse_json(f"[{2**64 - 1}, {1 - 2**64}, 1.5, true, null]", "x") == [
        2**64 - 1,
        1 - 2**64,
        1.5,
        True,
        None,
    ]
    assert parse_json('{"name": "caf\u00e9"}'.encode(), "x") == {"name": "caf\u00e9"}


def test_without_a_reader_of_toml_the_plain_part_is_read(monkeypatch):
    for name in ("tomllib", "tomli"):
        monkeypatch.setitem(sys.modules, name, None)
    assert parse_toml(b"a = 1\n[t]\nb = [1, 2]\n", "x") == {"a": 1, "t": {"b": [1, 2]}}
    told = r"^x: is not valid TOML: line 2: \[a\] is a value already; correct it$"
    with pytest.raises(ValueError, match=told):
        parse_toml("a = 1\n[a]\nb = 2\n", "x")
    told = "^x: is not valid TOML: it is nested more than 64 deep; correct it$"
    with pytest.raises(ValueError, match=told):
        parse_toml("a = " + "[" * 100_000, "x")


tomli = pytest.importorskip("tomllib" if sys.version_info >= (3, 11) else "tomli")
SIGNS = st.text('[]{}",:=.0123456789eE+-_ainftrueslx\\\n #\ud800\u00e9', max_size=200)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner),
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.one_of(SIGNS, st.binary(max_size=100)))
def test_any_text_is_read_or_refused_with_the_name(text):
    for parse in (parse_json, parse_toml):
        found = refusal(parse, text, "NAME")
        assert not found or found.startswith("NAME: is not ")


@settings(max_examples=200, deadline=None, derandomize=True)
@given(VALUES)
def test_what_json_writes_is_read_back_but_for_what_no_reader_can_use(value):
    text = json.dumps(value)
    found = refusal(parse_json, text, "NAME")
    if found:
        assert found.startswith("NAME: is not ")
        assert any(r in found for r in ("finite number", "64 bits", "UTF-8 text", "nested"))
    else:
        assert parse_json(text, "NAME") == value


SCALARS = st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text()


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.text(), SCALARS)
def test_a_line_of_toml_holds_any_text_and_number(key, value):
    found = tomli.loads(f"[table]\n{toml_line(key, value)}\n")
    assert repr(found) == repr({"table": {key: value}})
    assert repr(parse_plain_toml(toml_line(key, value))) == repr({key: value})


@pytest.mark.parametrize("text", ["\U0001f600", "\x7f", "\x85\u2028", 'a "b" # \\ \r\n\t'])
def test_a_path_is_the_same_in_toml(text):
    line = toml_line("data", text)
    assert parse_plain_toml(line) == tomli.loads(line) == {"data": text}


def test_no_character_of_a_line_steers_a_terminal():
    text = "\x1b[2J\x7f\x9b\u202e\u2028\u2066 caf\xe9 \U0001f600"
    line = toml_line(text, text)
    shown = r'"\u001b[2J\u007f\u009b\u202e\u2028\u2066 ' + 'caf\xe9 \U0001f600"'
    assert line == f"{shown} = {shown}"
    assert parse_plain_toml(line) == tomli.loads(line) == {text: text}


@pytest.mark.parametrize("line", ["[a b{}", "{}", "key = {}", "[t]\nkey = 1\n[t.{}]"])
def test_a_long_line_is_shortened_in_the_error_of_the_plain_reader(line):
    with pytest.raises(ValueError, match=r"^line \d: .*x\.\.\. is not ") as caught:
        parse_plain_toml(line.format("x" * 10**6))
    assert len(str(caught.value)) < 300


def test_what_toml_cannot_hold_is_named():
    told = r"^data='caf\\udce9' is not UTF-8 text; rename the file$"
    with pytest.raises(ValueError, match=told):
        toml_line("data", "caf\udce9")
    with pytest.raises(ValueError, match=r"^caf\\udce9=1 is not UTF-8 text; rename the file$"):
        toml_line("caf\udce9", 1)
    with pytest.raises(ValueError, match=r"^data=None must be text, a number, True or False$"):
        toml_line("data", None)
    with pytest.raises(ValueError, match=r"^n=18446744073709551616 has more than 64 bits; give it"):
        toml_line("n", 2**64)
    with pytest.raises(ValueError, match=r"^the name 1 of 'a' must be text$"):
        toml_line(1, "a")


def test_a_float_of_toml_stays_finite():
    assert math.isfinite(parse_toml("a = 1e308", "x")["a"])


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
