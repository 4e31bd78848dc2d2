"""An export replaces files that an earlier one wrote, all of them or none."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pmt._util import atomic_file
from pmt._util.processes import machine_tag
from pmt.firmware.export.folder import (
    check_folder,
    checked_out,
    make_lock,
    write_folder,
    write_project,
)
from pmt.firmware.export.layout import templates


def project(**files: str) -> dict[str, bytes]:
    """A project of some files, with its lock; ``_`` in a name is a slash."""
    named = {name.replace("_", "/"): text.encode() for name, text in files.items()}
    return {**named, "pmt.lock": make_lock(named, None, {}).to_bytes()}


def write(out: Path, force: bool = False, **files: str) -> None:
    check_folder(out, force)
    write_folder(out, project(**files))


def contents(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "pmt.lock"
    }


def refused(out: Path, force: bool = False, **files: str) -> str:
    before = contents(out) if out.is_dir() else {}
    with pytest.raises(FileExistsError) as error:
        write(out, force, **(files or {"Makefile": "new"}))
    assert (contents(out) if out.is_dir() else {}) == before
    return str(error.value)


def test_an_export_is_replaced_and_nothing_is_left_beside(tmp_path):
    write(tmp_path / "fw", Makefile="old", core_gone="x")
    write(tmp_path / "fw", Makefile="new")
    assert contents(tmp_path / "fw") == {"Makefile": "new"}
    assert [path.name for path in tmp_path.iterdir()] == ["fw"]


@pytest.mark.parametrize("force", [False, True])
def test_what_no_export_wrote_is_kept_and_the_build_removed(tmp_path, force):
    out = tmp_path / "fw"
    write(out, Makefile="old", core_a="x")
    (out / "notes.txt").write_text("mine")
    (out / "core" / "mine").write_text("mine, too")
    (out / "link").symlink_to("notes.txt")
    (out / "build").mkdir()
    (out / "build" / "fw.elf").write_text("made")
    write(out, force, Makefile="new")
    assert contents(out) == {
        "Makefile": "new",
        "notes.txt": "mine",
        "core/mine": "mine, too",
        "link": "mine",
    }
    assert os.readlink(out / "link") == "notes.txt"


def test_files_of_the_users_are_kept_in_folders_of_their_own_and_without_hard_links(
    tmp_path, monkeypatch
):
    def refuse(*_, **__):
        raise OSError(95, "Operation not supported")

    out = tmp_path / "fw"
    write(out, Makefile="old")
    (out / "my" / "own").mkdir(parents=True)
    (out / "my" / "own" / "notes").write_text("mine")
    (out / "my" / "own" / "link").symlink_to("notes")
    for text in ("linked", "copied"):
        write(out, Makefile=text)
        assert contents(out) == {"Makefile": text, "my/own/notes": "mine", "my/own/link": "mine"}
        assert os.readlink(out / "my" / "own" / "link") == "notes"
        monkeypatch.setattr(os, "link", refuse)


def test_a_folder_that_the_user_emptied_is_filled_again(tmp_path):
    out = tmp_path / "fw"
    write(out, core_a="x")
    (out / "core" / "a").unlink()
    write(out, core_b="y")
    assert contents(out) == {"core/b": "y"}


def test_an_export_of_another_kind_is_not_replaced(tmp_path):
    for is_learner, out, kind in (
        (False, tmp_path / "training", "a training"),
        (True, tmp_path / "learner", "a learner or of inference"),
    ):
        assert checked_out(out, force=False, learner=is_learner) == out
        write(out, **({"learner.json": "{}"} if is_learner else {"Makefile": ""}))
        assert checked_out(out, force=False, learner=is_learner) == out
        with pytest.raises(FileExistsError) as error:
            checked_out(out, force=True, learner=not is_learner)
        assert str(error.value) == f"out='{out}' is the export of {kind}: choose another"


MAINS = {
    part: templates(part)["app/main.cpp"].read_bytes()
    for part in ("project", "select", "learner", "zephyr_learner")
}


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("project", "project", ""),
        ("project", "select", "without --select (select=...)"),
        ("select", "project", "with --select (select=...)"),
        ("select", "select", ""),
        ("learner", "zephyr_learner", "of another --format (format=...)"),
        ("zephyr_learner", "learner", ""),
        ("zephyr_learner", "zephyr_learner", ""),
    ],
)
def test_a_changed_application_is_kept_or_refused_and_an_unchanged_one_gives_way(
    tmp_path, old, new, kind
):
    out = tmp_path / "fw"
    main, mine = out / "app" / "main.cpp", MAINS[old] + b"// mine\n"

    def export(part):
        files = {"Makefile": part.encode(), "app/main.cpp": MAINS[part]}
        write_project(out, files, None, {})

    export(new)
    export(old)
    assert main.read_bytes() == MAINS[old]
    main.write_bytes(mine)
    (out / "app" / "more.cpp").write_text("more")
    if kind:
        message = (
            f"out='{out}' keeps a changed app/main.cpp, which is for an export {kind}; move it "
            "away, or choose another folder"
        )
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            export(new)
    else:
        export(new)
    assert contents(out) == {
        "Makefile": old if kind else new,
        "app/main.cpp": mine.decode(),
        "app/more.cpp": "more",
    }


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_that_no_export_wrote_is_left_alone(tmp_path, force):
    out = tmp_path / "fw"
    out.mkdir()
    (out / "letter.txt").write_text("dear")
    assert refused(out, force) == (
        f"out='{out}' exists and is not an earlier export: it has no pmt.lock that says what may "
        "be replaced; choose another folder, or empty this one"
    )
    (out / "export.json").write_text("{}")
    (out / "pmt.lock").write_text("{}")
    assert "is not an earlier export" in refused(out, force)
    assert "is not an earlier export" in refused(out / "letter.txt", force)


def test_changed_files_are_replaced_by_force_alone(tmp_path):
    out = tmp_path / "fw"
    write(out, Makefile="old", core_a="x", core_b="y", core_c="z")
    (out / "Makefile").write_text("mine")
    (out / "core" / "b").write_text("mine")
    (out / "core" / "c").unlink()
    assert refused(out) == (
        f"out='{out}' has files that were changed since they were exported: Makefile, core/b; "
        "choose another folder, or replace them with --force (force=True)"
    )
    write(out, True, Makefile="new")
    assert contents(out) == {"Makefile": "new"}


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(("mine", "new"), [("a", "a"), ("a", "a_b"), ("a/b", "a")])
def test_a_file_of_the_users_in_the_way_is_named(tmp_path, force, mine, new):
    out = tmp_path / "fw"
    write(out, Makefile="old")
    (out / mine).parent.mkdir(exist_ok=True)
    (out / mine).write_text("mine")
    assert refused(out, force, **{new: "x"}) == (
        f"out='{out}' has files that no export wrote, in place of the project's: {mine}; move "
        "them away, or choose another folder"
    )


@pytest.mark.parametrize("force", [False, True])
def test_places_of_more_than_a_project_are_refused(tmp_path, force, monkeypatch):
    home, here = tmp_path / "users" / "me", tmp_path / "work" / "here"
    for folder in (home, here):
        write(folder, Makefile="old")  # even with a manifest
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(here)
    assert refused(home, force) == (
        f"out='{home}' is the home folder; name a folder of its own for the project"
    )
    assert "is the home folder, or above it" in refused(home.parent, force)
    assert refused(Path("."), force) == (
        "out='.' is the working folder; name a folder of its own for the project"
    )
    assert "is the working folder, or above it" in refused(here.parent, force)
    with pytest.raises(FileExistsError, match="out='/' is the working folder, or above it"):
        check_folder(Path("/"), force)


def test_a_link_stays_one(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "fw").symlink_to("real")
    (tmp_path / "next").symlink_to("later")
    for text in ("old", "new"):
        for name in ("fw", "next"):
            write(tmp_path / name, Makefile=text)
    assert contents(tmp_path / "real") == contents(tmp_path / "later") == {"Makefile": "new"}
    assert os.readlink(tmp_path / "fw") == "real"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fw", "later", "next", "real"]
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(FileExistsError):
        check_folder(tmp_path / "loop", True)


KILLED = """
import os, sys
from pathlib import Path
from pmt.firmware.export.folder import write_folder
renames = []
rename = Path.rename
def dying(self, target):
    renames.append(target)
    if len(renames) == int(sys.argv[2]):
        os._exit(9)
    return rename(self, target)
Path.rename = dying
write_folder(Path(sys.argv[1]), {"Makefile": b"new"})
"""


@pytest.mark.parametrize("at", [1, 2])
def test_an_export_killed_at_a_rename_is_taken_back_by_the_next(tmp_path, at):
    out = tmp_path / "fw"
    write(out, Makefile="old", app_main="mine")
    killed = subprocess.run([sys.executable, "-c", KILLED, str(out), str(at)], check=False)
    assert killed.returncode == 9
    assert out.exists() == (at == 1)
    check_folder(out, False)
    assert contents(out) == {"Makefile": "old", "app/main": "mine"}
    assert [path.name for path in tmp_path.iterdir()] == ["fw"]


def test_strays_of_dead_processes_are_removed_and_no_others(tmp_path):
    out, here = tmp_path / "fw", machine_tag()
    kept = [
        f".fw.0.{here}.{os.getppid()}.part",
        ".fw.0.00000000.4194305.part",  # of another machine, and new
        ".fw.notes.old",
        f".fw2.0.{here}.4194305.old",
    ]
    write(out, Makefile="old")
    for name in (f".fw.0.{here}.4194305.part", f".fw.0.{here}.4194305.old", *kept):
        (tmp_path / name).mkdir()
    kept.append(f".fw.1.{here}.4194305.part")  # a file, which no export writes there
    (tmp_path / kept[-1]).touch()
    write(out, Makefile="new")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*kept, "fw"])


def test_folders_that_are_empty_and_the_rights_of_the_folder_are_kept(tmp_path):
    out = tmp_path / "fw"
    write(out, Makefile="old")
    out.chmod(0o700)
    (out / ".git" / "refs" / "tags").mkdir(parents=True)
    write(out, Makefile="new")
    assert contents(out) == {"Makefile": "new"}
    assert (out / ".git" / "refs" / "tags").is_dir()
    assert out.stat().st_mode & 0o777 == 0o700


def test_all_is_on_the_disk_before_it_is_renamed(tmp_path, monkeypatch):
    out, events, rename = tmp_path / "fw", [], Path.rename
    write(out, Makefile="old")
    (out / "link").symlink_to("nowhere")

    def sync(path):
        events.append("/".join(Path(path).relative_to(tmp_path).parts[1:]))

    def watched(path, target):
        events.append("renamed")
        return rename(path, target)

    monkeypatch.setattr(atomic_file, "sync", sync)
    monkeypatch.setattr(Path, "rename", watched)
    write(out, Makefile="new", core_a="x")
    assert sorted(events[:5]) == ["", "Makefile", "core", "core/a", "pmt.lock"]
    assert events[5:] == ["renamed", "renamed", ""]


def test_what_a_crash_of_the_machine_hid_is_brought_back(tmp_path):
    write(tmp_path / "fw", Makefile="old")
    (tmp_path / "fw").rename(tmp_path / ".fw.0.00000000.1.old")  # before the restart
    check_folder(tmp_path / "fw", False)
    assert contents(tmp_path / "fw") == {"Makefile": "old"}


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_between_the_renames_leaves_the_old_export(tmp_path, monkeypatch, error):
    write(tmp_path / "fw", Makefile="old")
    rename = Path.rename

    def fail(path: Path, target: Path) -> Path:
        if path.suffix == ".part":
            raise error
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(type(error)):
        write(tmp_path / "fw", Makefile="new")
    monkeypatch.undo()
    assert contents(tmp_path / "fw") == {"Makefile": "old"}
    assert [path.name for path in tmp_path.iterdir()] == ["fw"]


def test_a_full_disk_leaves_the_old_export(tmp_path, monkeypatch):
    write(tmp_path / "fw", Makefile="old", card_img="old")
    write_bytes = Path.write_bytes

    def full(path: Path, data: bytes) -> int:
        if path.name == "img":
            raise OSError(28, "No space left on device")
        return write_bytes(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="what was there is unchanged; free some space"):
        write(tmp_path / "fw", Makefile="new", card_img="new")
    assert contents(tmp_path / "fw") == {"Makefile": "old", "card/img": "old"}
    assert [path.name for path in tmp_path.iterdir()] == ["fw"]
