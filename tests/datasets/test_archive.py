"""Unpacking archives: whole ones, damaged ones and hostile ones."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from pmt.datasets import archive
from pmt.datasets.archive import unpack


def tar(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w") as file:
        for member, content in members:
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
    return path


def plain(name: str, content: bytes = b"x") -> tuple[tarfile.TarInfo, bytes]:
    return tarfile.TarInfo(name), content


def special(name: str, kind: bytes, target: str = "") -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member, b""


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.tgz"])
def test_tar(tmp_path: Path, name: str) -> None:
    made = tar(
        tmp_path / name,
        special("set/", tarfile.DIRTYPE),
        plain("set/one.txt", b"1"),
        plain("./set/deep/two.txt", b"2"),
    )
    (tmp_path / "out" / "set").mkdir(parents=True)
    (tmp_path / "out" / "set" / "one.txt").write_text("old")
    (tmp_path / "out" / "set" / "kept.txt").write_text("kept")
    assert unpack(made, tmp_path / "out") == 2
    found = {p.name: p.read_text() for p in (tmp_path / "out").rglob("*.txt")}
    assert found == {"one.txt": "1", "two.txt": "2", "kept.txt": "kept"}
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["set"]


def test_zip(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.mkdir("set")
        file.writestr("set/one.txt", "1" * 1000)
    assert unpack(tmp_path / "a.zip", tmp_path / "out") == 1
    assert (tmp_path / "out" / "set" / "one.txt").read_text() == "1" * 1000


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (plain("../out.txt"), r"holds '../out.txt', which leads out"),
        (plain("a/../../out.txt"), "leads out"),
        (plain("/tmp/out.txt"), "leads out"),
        (plain("C:/out.txt"), "leads out"),
        (plain("a\\..\\out.txt"), "leads out"),
        (special("link", tarfile.SYMTYPE, "/etc"), "holds 'link', a link or a device"),
        (special("link", tarfile.LNKTYPE, "a.txt"), "a link or a device"),
        (special("pipe", tarfile.FIFOTYPE), "a link or a device"),
    ],
)
def test_hostile_tar_members(
    tmp_path: Path, member: tuple[tarfile.TarInfo, bytes], message: str
) -> None:
    made = tar(tmp_path / "a.tar", plain("good.txt"), member)
    with pytest.raises(ValueError, match=rf"a.tar: {message if 'holds' in message else '.*'}"):
        unpack(made, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.tar", "out"]


@pytest.mark.parametrize("name", ["../out.txt", "/out.txt", "a/../../out.txt"])
def test_hostile_zip_members(tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as file:
        file.writestr(name, "x")
    with pytest.raises(ValueError, match="leads out of the folder; download it again"):
        unpack(tmp_path / "a.zip", tmp_path / "out")
    link = zipfile.ZipInfo("link")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as file:
        file.writestr(link, "/etc")
    with pytest.raises(ValueError, match="holds 'link', a link or encrypted"):
        unpack(tmp_path / "b.zip", tmp_path / "out")


def test_bombs_are_refused_before_they_fill_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "ALWAYS_ALLOWED", 1000)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("zeros", bytes(1_000_000))
    with pytest.raises(ValueError, match=r"unpacks to more than .* which may be a bomb"):
        unpack(tmp_path / "a.zip", tmp_path / "out")
    made = tar(tmp_path / "a.tar.gz", plain("small"), plain("zeros", bytes(1_000_000)))
    with pytest.raises(ValueError, match="may be a bomb"):
        unpack(made, tmp_path / "out")
    monkeypatch.setattr(archive, "MOST_MEMBERS", 1)
    made = tar(tmp_path / "b.tar", plain("one"), plain("two"))
    with pytest.raises(ValueError, match="or 1 files, which may be a bomb"):
        unpack(made, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_damaged_archives(tmp_path: Path) -> None:
    whole = tar(tmp_path / "a.tar.gz", plain("one", bytes(range(256)) * 40)).read_bytes()
    path = tmp_path / "b.tar.gz"
    for content in (b"", b"no archive", whole[:-40], whole[: len(whole) // 2]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"b.tar.gz: not a whole archive"):
            unpack(path, tmp_path / "out")
        assert list((tmp_path / "out").iterdir()) == []
    (tmp_path / "a.rar").write_bytes(b"Rar!")
    with pytest.raises(ValueError, match=r"a.rar: not one of .tar, .tar.gz, .tgz, .zip; unpack"):
        unpack(tmp_path / "a.rar", tmp_path / "out")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as file:
        file.writestr("one", "text that is stored")
    broken = (tmp_path / "a.zip").read_bytes().replace(b"text", b"TEXT")
    (tmp_path / "a.zip").write_bytes(broken)
    with pytest.raises(ValueError, match=r"a.zip: not a whole archive"):
        unpack(tmp_path / "a.zip", tmp_path / "out")
