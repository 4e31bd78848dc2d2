import io
import os
import pickle
import struct
import zipfile
from typing import Any

import numpy as np
import pytest
from tiny_training_builder import archive, saved, small_network

from pmt.formats import tiny_training


class Hostile:
    """Unpickling this calls a function."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize(
    "value",
    [
        Hostile(os.system, "touch was_run"),
        Hostile(eval, "open('was_run', 'w')"),
        np.array([{"an": "object"}], dtype=object),
        np.zeros(3, "f2"),
        {1, 2},
        np.float32(1.0),
    ],
    ids=lambda value: type(value).__name__,
)
def test_pickles_that_want_more_than_arrays_are_refused(tmp_path, monkeypatch, value):
    monkeypatch.chdir(tmp_path)
    network = small_network()
    network["first_conv"] = value
    path = saved(tmp_path / "net.pkl", network)
    with pytest.raises(ValueError, match=r"net\.pkl: refused, its pickle"):
        tiny_training.read(path)
    assert os.listdir() == ["net.pkl"]


@pytest.mark.parametrize(
    "program",
    [
        b"\x80\x02}r\xff\xff\xff\x7f.",  # a memo of 2**31 entries
        b"\x80\x02cnumpy\ndtype\n(NX\x01\x00\x00\x00a\x86b.",
        b"\x80\x02c_codecs\nencode\n}X\x0c\x00\x00\x00__defaults__X\x01\x00\x00\x00as\x86b.",
        b"\x80\x02" + b")" + b"\x85" * 200_000 + b".",  # tuples nested 200,000 deep
        b"\x80\x04\x95" + b"\xff" * 8 + b".",
        b"",
        b".",
        b"\x80\x02]q\x00h\x01.",
    ],
    ids=["memo", "dtype", "function", "nesting", "frame", "empty", "stop", "no_memo"],
)
def test_wild_pickle_programs_are_refused(tmp_path, program):
    with pytest.raises(ValueError, match=r"^net\.pkl: refused, its pickle"):
        tiny_training.read(archive(tmp_path / "net.pkl", program))


def test_zip_bomb_is_refused(tmp_path):
    path = archive(tmp_path / "net.pkl", bytes(8 * 2**20), method=zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 20_000
    with pytest.raises(ValueError, match=r"net\.pkl: .*more than 100 times as many"):
        tiny_training.read(path)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((2**31, 2**31), "unpacks to 2147483648 bytes, more than the limit"),
        ((2**31 - 1,), "claims 2147483647 bytes, the whole file has {size}"),
    ],
)
def test_sizes_that_are_declared_are_checked(tmp_path, sizes, message):
    path = saved(tmp_path / "net.pkl", small_network())
    data = bytearray(path.read_bytes())
    directory = data.index(b"PK\x01\x02")
    struct.pack_into(f"<{len(sizes)}I", data, directory + 20, *sizes)
    path.write_bytes(data)
    with pytest.raises(ValueError, match=rf"net\.pkl: .*{message.format(size=len(data))}"):
        tiny_training.read(path)


def test_wrong_archives_are_refused(tmp_path):
    path = tmp_path / "net.pkl"
    path.write_bytes(pickle.dumps(small_network(), protocol=2))
    plain = r"^net\.pkl: is a plain pickle, which may run code and is not opened; a tiny-training "
    with pytest.raises(ValueError, match=plain + "network is a zip archive of torch.save; export"):
        tiny_training.read(path)
    path.write_bytes(b"PK is not all")
    with pytest.raises(ValueError, match=r"net\.pkl: is not a sound torch zip archive"):
        tiny_training.read(path)
    empty = io.BytesIO()
    zipfile.ZipFile(empty, "w").close()
    path.write_bytes(empty.getvalue())
    with pytest.raises(ValueError, match=r"0 members named data\.pkl"):
        tiny_training.read(path)
