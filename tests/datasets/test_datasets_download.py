"""Downloads, from a server on this machine; nothing here touches the network."""

import hashlib
import io
import json
import logging
import re
import sys
import tarfile
from pathlib import Path

import numpy as np
import pooch
import pytest
from data_server import DataServer, data_server

from pmt.cli import main
from pmt.datasets import CATALOG, data_folder, download, load
from pmt.datasets.catalog import RemoteFile, Source
from pmt.errors import DownloadError

RECORD = b"\x03" + bytes(range(256)) * 12


def cifar_archive() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name in ("data_batch_1.bin", "test_batch.bin"):
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = len(RECORD)
            archive.addfile(member, io.BytesIO(RECORD))
    return stream.getvalue()


def noise(size: int) -> bytes:
    return np.random.default_rng(size).bytes(size)


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("PMT_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def server():
    with data_server() as running:
        yield running


def offer(
    monkeypatch: pytest.MonkeyPatch, server: DataServer, files: dict[str, bytes], **options: object
) -> None:
    """Let the catalog's "made" be these files of the server."""
    server.files = files
    remote = tuple(
        RemoteFile(
            server.url(name),
            len(content),
            hashlib.sha256(content).hexdigest(),
            unpack=name.endswith("gz"),
            folder="" if name.endswith("gz") else "notes",
        )
        for name, content in files.items()
    )
    note = str(options.get("note", ""))
    monkeypatch.setitem(CATALOG, "made", Source("Made", "none", remote, note))


def test_the_catalog_names_every_file_with_its_hash():
    for name, source in CATALOG.items():
        assert name == name.lower()
        assert source.files
        for file in source.files:
            assert len(bytes.fromhex(file.sha256)) == 32
            assert file.size > 0
            assert "/" not in file.name
            assert file.url.startswith(("https://", "http://"))
    assert CATALOG["cifar10"].files[0].name == "cifar-10-binary.tar.gz"


def test_fetched_unpacked_and_loaded_by_name(monkeypatch, server, data):
    offer(monkeypatch, server, {"made.tar.gz": cifar_archive(), "readme.txt": b"about"})
    assert download("made") == data / "made"
    assert sorted(p.name for p in (data / "made").iterdir()) == [
        ".pmt-download",
        "cifar-10-batches-bin",
        "notes",
    ]
    assert (data / "made" / "notes" / "readme.txt").read_bytes() == b"about"
    assert load("made").labels.tolist() == [3]
    assert load("made", split="test").images.shape == (1, 32, 32, 3)
    assert server.ranges == [None, None]
    download("made")
    assert len(server.ranges) == 2
    (data / "made" / "notes" / "readme.txt").unlink()
    download("made")
    assert len(server.ranges) == 3


def test_a_connection_that_breaks_is_resumed(monkeypatch, server, tmp_path, caplog):
    caplog.set_level(logging.INFO, "pmt")
    content = noise(100_000)
    offer(monkeypatch, server, {"a.txt": content})
    server.breaks_after = [30_000, 50_000]
    folder = download("made", tmp_path / "elsewhere")
    assert (folder / "notes" / "a.txt").read_bytes() == content
    assert server.ranges == [None, "bytes=30000-", "bytes=80000-"]
    file = folder / "notes" / "a.txt"
    assert caplog.messages[0] == f"{file}, 100000 bytes, from {server.url('a.txt')}"
    assert [message.partition(" goes on ")[2] for message in caplog.messages[1:]] == [
        "after 30000 of 100000 bytes",
        "after 80000 of 100000 bytes",
    ]


def test_what_an_interrupted_download_left_is_taken_up_later(monkeypatch, server, data):
    content = noise(100_000)
    offer(monkeypatch, server, {"a.txt": content})
    server.breaks_after = [40_000, 0]
    with pytest.raises(DownloadError, match=r"a.txt: could not be fetched \(the connection ended"):
        download("made")
    assert not (data / "made" / "notes" / "a.txt").exists()
    assert not (data / "made" / ".pmt-download").exists()
    folder = download("made")
    assert server.ranges == [None, "bytes=40000-", "bytes=40000-"]
    assert (folder / "notes" / "a.txt").read_bytes() == content
    assert [path.name for path in (folder / "notes").iterdir()] == ["a.txt"]


def test_a_server_without_ranges_starts_again(monkeypatch, server, data):
    content = noise(50_000)
    offer(monkeypatch, server, {"a.txt": content})
    server.knows_ranges = False
    part = data / "made" / "notes" / ".a.txt.part"
    part.parent.mkdir(parents=True)
    for left in (noise(10_000), noise(60_000), content):
        part.write_bytes(left)
        (data / "made" / "notes" / "a.txt").unlink(missing_ok=True)
        assert (download("made") / "notes" / "a.txt").read_bytes() == content
    assert server.ranges == ["bytes=10000-", None]


def test_another_file_than_the_published_one_is_refused(monkeypatch, server, data):
    offer(monkeypatch, server, {"a.txt": b"published"})
    server.files["a.txt"] = b"something else, and longer"
    digest = hashlib.sha256(b"published").hexdigest()
    with pytest.raises(OSError, match=r"a.txt: could not be fetched \(what the server sends") as e:
        download("made")
    assert f"{server.url('a.txt')}, 9 bytes, SHA-256 {digest}" in str(e.value)
    assert list((data / "made" / "notes").iterdir()) == []


def test_what_is_unpacked_joins_what_is_there_or_leaves_it(monkeypatch, server, data):
    offer(monkeypatch, server, {"made.tar.gz": cifar_archive()})
    place = data / "made" / "cifar-10-batches-bin"
    place.mkdir(parents=True)
    (place / "test_batch.bin").write_text("old")
    (place / "kept.txt").write_text("kept")

    def full(_: object, archive: str, folder: str) -> None:
        (Path(folder) / "data_batch_1.bin").write_bytes(b"half")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as changed:
        changed.setattr(pooch.Untar, "_extract_file", full)
        with pytest.raises(OSError, match="No space left"):
            download("made")
    assert (place / "test_batch.bin").read_text() == "old"
    download("made")
    assert (place / "test_batch.bin").read_bytes() == RECORD
    assert (place / "kept.txt").read_text() == "kept"
    assert server.ranges == [None]
    names = {path.name for path in (data / "made").iterdir()}
    assert names == {".pmt-download", "cifar-10-batches-bin"}


def test_a_file_put_there_by_hand_is_taken(monkeypatch, server, data):
    offer(monkeypatch, server, {"made.tar.gz": cifar_archive()})
    server.files = {}
    with pytest.raises(OSError, match=r"made.tar.gz: could not be fetched \(HTTP 404 Not Found\)"):
        download("made")
    (data / "made" / "made.tar.gz").write_bytes(cifar_archive())
    download("made")
    assert load("made").labels.tolist() == [3]


def test_offline_the_error_says_what_to_put_where(monkeypatch, server, data):
    offer(monkeypatch, server, {"a.txt": b"x"}, note="a mirror has it")
    closed = CATALOG["made"].files[0]._replace(url="http://127.0.0.1:9/a.txt")
    monkeypatch.setitem(CATALOG, "made", CATALOG["made"]._replace(files=(closed,)))
    place = data / "made" / "notes" / "a.txt"
    with pytest.raises(OSError, match="refused") as caught:
        download("made")
    assert str(caught.value).startswith(f"{place}: could not be fetched (")
    assert str(caught.value).endswith(f"1 bytes, SHA-256 {closed.sha256}; a mirror has it")


def test_a_download_that_did_not_end_is_no_unknown_layout(monkeypatch, server, data):
    offer(monkeypatch, server, {"made.tar.gz": cifar_archive()})
    server.files = {}
    other = data / "other root"
    for root, option in ((data, ""), (other, f" --root '{other}'")):
        with pytest.raises(OSError, match="could not be fetched"):
            download("made", root)
        (root / "made" / ".made.tar.gz.part").touch()
        message = (
            f"{root / 'made'}: the download is not complete; `pmt download made{option}` continues "
            "it"
        )
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            load(root / "made")
    (other / "made" / "notes.txt").touch()  # a folder of the user's own that has such a name
    with pytest.raises(ValueError, match=r"made: .*no data set found in this folder"):
        load(other / "made")


def test_no_space(monkeypatch, server):
    offer(monkeypatch, server, {"a.txt": b"x"})
    huge = CATALOG["made"].files[0]._replace(size=10**18)
    monkeypatch.setitem(CATALOG, "made", CATALOG["made"]._replace(files=(huge,)))
    with pytest.raises(OSError, match=r"1000000000.0 GB are needed, .* GB are free; free some"):
        download("made")
    assert server.ranges == []


def test_unknown_names_and_names_not_yet_fetched(data):
    with pytest.raises(
        ValueError, match=r"name='cifar-10': no such data set to download; did you mean 'cifar10'"
    ):
        download("cifar-10")
    with pytest.raises(FileNotFoundError, match=r"cifar10: .*fetch it with `pmt download cifar10`"):
        load("cifar10")
    assert data_folder() == data


def test_a_folder_of_that_name_goes_before_the_data_folder(monkeypatch, tmp_path):
    (tmp_path / "cifar10").mkdir()
    (tmp_path / "cifar10" / "test_batch.bin").write_bytes(RECORD)
    monkeypatch.chdir(tmp_path)
    assert load("cifar10", split="test").labels.tolist() == [3]


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {}, "/home/me/.cache/pmt"),
        ("linux", {"XDG_CACHE_HOME": "/fast"}, "/fast/pmt"),
        ("darwin", {}, "/home/me/Library/Caches/pmt"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/pmt"),
        ("win32", {"PMT_DATA": "~/data"}, "/home/me/data"),
    ],
)
def test_the_data_folder_of_each_platform(monkeypatch, platform, variables, expected):
    for name in ("PMT_DATA", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {**variables, "HOME": "/home/me"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert data_folder() == Path(expected)


def test_without_pooch_the_error_names_the_extra(monkeypatch, server):
    offer(monkeypatch, server, {"a.txt": b"x"})
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ModuleNotFoundError, match=r'pooch: pip install "poor-mans-training\[data'):
        download("made")


def test_the_command_fetches_and_evaluates_by_name(monkeypatch, server, data, capsys):
    offer(monkeypatch, server, {"made.tar.gz": cifar_archive()})
    assert main(["download", "made", "--json", "-"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["made"]["path"] == str(data / "made")
    assert figures["made"]["files"][0]["sha256"] == CATALOG["made"].files[0].sha256
    assert main(["eval", "fashion_mnist_dscnn", "--data", "made"]) == 2
    assert "images have 3 channels, the model takes 1" in capsys.readouterr().err
    assert main(["eval", "fashion_mnist_dscnn", "--data", "mnist"]) == 2
    assert "fetch it with `pmt download mnist`" in capsys.readouterr().err
    assert main(["download", "made", "nothing"]) == 2
    assert "NAME 'nothing' is unknown; choose one of cifar10" in capsys.readouterr().err


def test_the_command_lists_what_there_is(capsys):
    assert main(["download"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(CATALOG)
    assert " ".join(lines[1].split()) == (
        "cifar10 CIFAR-10 170 no license stated; cite Krizhevsky, 2009"
    )
