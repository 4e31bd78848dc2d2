"""Errors that a program may want to handle are of one base, and still the built-in kinds."""

import pickle
import re
from pathlib import Path

import pytest

import pmt
from pmt import errors
from pmt._util.extras import missing_extra
from pmt._util.folder_lock import FolderLock
from pmt._util.places import check_place

KINDS = {
    errors.OptionError: ValueError,
    errors.FileError: ValueError,
    errors.MissingFileError: FileNotFoundError,
    errors.ExistingFileError: FileExistsError,
    errors.OtherRunError: ValueError,
    errors.FolderBusyError: BlockingIOError,
    errors.ModelBusyError: RuntimeError,
    errors.DownloadError: OSError,
    errors.MissingExtraError: ModuleNotFoundError,
}


def test_every_error_has_the_base_and_a_built_in_kind():
    public = {getattr(errors, name) for name in errors.__all__}
    assert set(KINDS) == public - {errors.PmtError, errors.OptionWarning}
    for error, kind in KINDS.items():
        assert error.__bases__[-2:] == (errors.PmtError, kind)


def test_the_page_lists_every_error_with_its_kind():
    page = (Path(__file__).parents[2] / "docs/reference/python.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", page, re.MULTILINE)
    assert rows == [(error.__name__, kind.__name__) for error, kind in KINDS.items()]


def test_errors_survive_a_process_pool():
    """Pools pickle them."""
    option = pickle.loads(pickle.dumps(errors.OptionError("top", " 9: must be 1 to 3")))
    assert str(option) == "top 9: must be 1 to 3"
    file = pickle.loads(pickle.dumps(errors.FileError("a.onnx", ["no nodes", "no opset"])))
    assert (file.path, file.problems) == ("a.onnx", ("no nodes", "no opset"))
    assert str(file) == "a.onnx: no nodes; a.onnx: no opset"
    own = pickle.loads(pickle.dumps(errors.FileError("a.onnx", "no nodes")))
    assert (own.problems, str(own)) == (("no nodes",), "a.onnx: no nodes")
    assert str(pickle.loads(pickle.dumps(errors.FileError("the file is odd")))) == "the file is odd"
    gone = pickle.loads(pickle.dumps(errors.MissingFileError(2, "the run is gone", "runs/a")))
    assert (gone.errno, gone.filename) == (2, "runs/a")


@pytest.mark.parametrize("suffix", [".pmt", ".tflite", ".onnx", ".pkl", ".img"])
def test_a_damaged_model_is_a_file_error(tmp_path, suffix):
    path = tmp_path / f"net{suffix}"
    path.write_bytes(b"no network")
    with pytest.raises(errors.FileError, match=f"^.*net{suffix}: ") as caught:
        pmt.load(path)
    assert caught.value.path.endswith(f"net{suffix}")
    assert len(caught.value.problems) == 1


def test_a_bad_argument_of_an_importer_is_no_file_error(tmp_path):
    path = tmp_path / "net.pkl"
    path.write_bytes(b"no network")
    with pytest.raises(ValueError, match="resolution=1 must be") as caught:
        pmt.load(path, resolution=1)
    assert not isinstance(caught.value, errors.PmtError)


def test_what_is_not_there_is_a_missing_file(tmp_path):
    with pytest.raises(errors.MissingFileError, match="there is no such file"):
        pmt.load(tmp_path / "net.onnx")
    with pytest.raises(errors.MissingFileError, match="no such file or folder"):
        pmt.datasets.load(tmp_path / "images")
    with pytest.raises(errors.MissingFileError, match="holds no run"):
        pmt.RunFolder(tmp_path).load_checkpoint()


def test_a_folder_in_use_is_busy(tmp_path):
    first, second = (FolderLock(tmp_path / "runs.lock") for _ in range(2))
    with (
        first.holding("runs"),
        pytest.raises(errors.FolderBusyError, match="runs is in use by"),
        second.holding("runs"),
    ):
        raise AssertionError("both hold the folder")


def test_what_is_in_the_way_exists(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(errors.ExistingFileError, match="is a link to itself"):
        check_place(tmp_path / "loop" / "out", "out")


def test_a_missing_extra_says_how_to_install_it():
    found = missing_extra("plots need matplotlib", "plot")
    assert isinstance(found, errors.MissingExtraError)
    assert isinstance(found, ModuleNotFoundError)
    assert "pip install" in str(found)


def test_the_module_shows_errors_only():
    assert dir(errors) == sorted(errors.__all__)
