"""Every command on every kind of unusable file: one line that names the file, and no traceback."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from networks import residual_network
from onnx_networks import Network

from pmt.cli import main

DATA = ["--data", "bundled", "--limit", "8"]
MODEL_COMMANDS = {
    "info": ["info", "FILE"],
    "profile": ["profile", "FILE", "--method", "default"],
    "eval": ["eval", "FILE", *DATA],
    "eval_against": ["eval", "NET", *DATA, "--against", "FILE"],
    "predict": ["predict", "FILE", "OUT.png"],
    "train": ["train", "FILE", "--data", "bundled", "--out", "OUT"],
    "align": ["align", "FILE", "--data", "bundled", "--out", "OUT.pmt"],
    "statistics": ["statistics", "FILE", "--data", "bundled", "--out", "OUT.pmt"],
    "select": ["select", "FILE", "--data", "bundled"],
    "scheme": ["scheme", "FILE", "--method", "tinytrain", "--memory", "9K", "--data", "bundled",
               "--out", "OUT.json"],
    "convert": ["convert", "FILE", "OUT.pmt"],
    "export": ["export", "FILE", "--target", "generic", "--data", "bundled", "--out", "OUT"],
}  # fmt: skip
DATA_COMMANDS = {
    "eval": ["eval", "NET", "--data", "FILE"],
    "eval_fog": ["eval", "NET", "--data", "FILE", "--corruption", "fog"],
    "predict": ["predict", "NET", "FILE"],
    "predict_names": ["predict", "NET", "OUT.png", "--names-of", "FILE"],
    "train": ["train", "NET", "--data", "FILE", "--out", "OUT"],
    "corrupt": ["corrupt", "FILE", "--name", "fog", "--out", "OUT"],
    "show": ["show", "FILE", "--out", "OUT.png"],
    "quantize": ["quantize", "ONNX", "--calibrate", "FILE", "--out", "OUT.pmt"],
}
OTHER_COMMANDS = {
    "quantize.onnx": ["quantize", "FILE", "--calibrate", "bundled", "--out", "OUT.pmt"],
    "target.toml": ["export", "NET", "--target", "FILE", "--data", "bundled", "--out", "OUT"],
    "export_lock.lock": ["export", "--from", "FILE", "--out", "OUT"],
    "train_resume.run": ["train", "--resume", "FILE"],
    "profile_scheme.json": ["profile", "NET", "--method", "mcutrain", "--scheme", "FILE"],
    "train_scheme.json": ["train", "NET", "--data", "bundled", "--method", "mcutrain", "--set",
                          "scheme=FILE", "--out", "OUT"],
    "convert_into.tflite": ["convert", "NET", "OUT.tflite", "--into", "FILE"],
}  # fmt: skip


def _truncated(path: Path, sound: bytes) -> None:
    path.write_bytes(sound[: len(sound) // 2])


def _garbage(path: Path, sound: bytes) -> None:
    path.write_bytes(bytes((7 * i * i + 13) % 256 for i in range(3000)))


def _brackets(path: Path, sound: bytes) -> None:
    path.write_bytes(b"[" * 100_000)


def _empty(path: Path, sound: bytes) -> None:
    path.write_bytes(b"")


def _folder(path: Path, sound: bytes) -> None:
    path.mkdir()


def _missing(path: Path, sound: bytes) -> None:
    pass


def _unreadable(path: Path, sound: bytes) -> None:
    """Modes do not stop root: a link to itself stops everybody."""
    path.symlink_to(path.name)


DAMAGES: dict[str, Callable[[Path, bytes], None]] = {
    "truncated": _truncated,
    "garbage": _garbage,
    "brackets": _brackets,
    "empty": _empty,
    "folder": _folder,
    "missing": _missing,
    "unreadable": _unreadable,
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory, mcunet_path):
    """A sound file of each kind, by its suffix."""
    folder = tmp_path_factory.mktemp("sound")
    model = residual_network()
    for suffix in (".pmt", ".tflite", ".onnx"):
        model.save(folder / f"net{suffix}")
    shutil.copy(mcunet_path, folder / "net.pkl")
    files = {path.suffix: path.read_bytes() for path in folder.iterdir()}
    return {**files, ".img": b"PMTD" + bytes(5000), ".npz": b"PK\3\4" + bytes(300)}


def float_network() -> bytes:
    n = Network()
    pooled = n.add("GlobalAveragePool", [n.conv("x", 3, 4)])
    return n.model(n.head(pooled, 4)).SerializeToString()


def refuse(
    command: list[str], path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = {"FILE": str(path), "NET": "fashion_mnist_dscnn", "OUT": str(out)}
    line = []
    for word in command:
        for name, value in words.items():
            word = word.replace(name, value)
        line.append(word)
    code = main(line)
    error = capsys.readouterr().err
    assert code in (1, 2)
    lines = error.splitlines()
    assert len(lines) == 1
    assert all(line.startswith("pmt: error: ") and path.name in line for line in lines)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("suffix", [".pmt", ".tflite", ".onnx", ".pkl", ".img"])
@pytest.mark.parametrize("name", MODEL_COMMANDS)
def test_models(name, suffix, damage, sound, tmp_path, capsys):
    path = tmp_path / f"mine{suffix}"
    DAMAGES[damage](path, sound[suffix])
    refuse(MODEL_COMMANDS[name], path, tmp_path, capsys)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("suffix", [".npz", ".txt", ""])
@pytest.mark.parametrize("name", DATA_COMMANDS)
def test_data(name, suffix, damage, sound, tmp_path, capsys):
    path = tmp_path / f"mine{suffix}"
    DAMAGES[damage](path, sound[".npz"])
    if name == "quantize":
        (tmp_path / "net.onnx").write_bytes(float_network())
    command = [word.replace("ONNX", str(tmp_path / "net.onnx")) for word in DATA_COMMANDS[name]]
    refuse(command, path, tmp_path, capsys)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", OTHER_COMMANDS)
def test_other_files(name, damage, sound, tmp_path, capsys):
    path = tmp_path / f"mine{Path(name).suffix}"
    DAMAGES[damage](path, sound.get(path.suffix, b'{"version": 1, "steps'))
    refuse(OTHER_COMMANDS[name], path, tmp_path, capsys)


@pytest.mark.parametrize("damage", DAMAGES)
def test_logs(damage, tmp_path, capsys):
    """Text that is not a log is shown, without a verdict, with its control characters escaped."""
    path = tmp_path / "mine.log"
    DAMAGES[damage](path, b"model: 3 ops, 100 bytes in flash\n\x1b[31m\nstep 1: ...")
    code = main(["monitor", "--file", str(path)])
    out, error = capsys.readouterr()
    if damage in ("folder", "missing", "unreadable"):
        assert (code, out) == (2, "")
        assert error.startswith(f"pmt: error: --file {path}: ")
        assert error.count("\n") == 1
    else:
        assert (code, error) == (1, "")
        assert out.endswith("verify       no verdict: the log ends before it\n")
        assert not {c for c in out if c != "\n" and ord(c) < 32 and c != "\t"}
