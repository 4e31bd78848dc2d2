"""`pmt demo` and `pmt doctor`, the first commands of a new installation."""

import json
import re
from importlib import metadata

import pytest

import pmt
from pmt import _core
from pmt.cli import doctor, main


def test_demo_adapts_without_a_file_and_leaves_none(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--json", "-"]) == 0
    printed = capsys.readouterr()
    figures = json.loads(printed.out)
    assert figures["before"]["fog"]["accuracy"] == pytest.approx(0.238)
    assert figures["after"]["fog"]["accuracy"] > 0.7
    assert figures["head_alone"]["n"] == 1000
    row = re.search(r"^fog accuracy +(\S+) +(\S+)$", printed.err, re.MULTILINE)
    assert row is not None
    assert row.groups() == ("23.8%", f"{figures['after']['fog']['accuracy']:.1%}")
    assert "points of accuracy: +" in printed.err
    assert list(tmp_path.iterdir()) == []


def test_demo_keeps_its_run_in_a_new_folder_alone(tmp_path, capsys):
    out = tmp_path / "demo"
    assert main(["demo", "--out", str(out)]) == 0
    assert pmt.RunFolder(out).done
    assert capsys.readouterr().out.rstrip().endswith("its curves in curves.png")
    assert main(["demo", "--out", str(out)]) == 2
    assert capsys.readouterr().err == (
        f"pmt: error: --out={str(out)!r} holds a finished run; choose another folder or remove it\n"
    )
    (out / "DONE").unlink()  # as a run that was interrupted at its end
    assert main(["demo", "--out", str(out)]) == 0
    assert pmt.RunFolder(out).done
    capsys.readouterr()
    (tmp_path / "notes.txt").write_text("mine")
    assert main(["demo", "--out", str(tmp_path)]) == 2
    assert "already exists and holds no run" in capsys.readouterr().err


def test_doctor_names_versions_kernels_packages_and_programs(capsys):
    assert main(["doctor", "--json", "-"]) == 0
    printed = capsys.readouterr()
    figures = json.loads(printed.out)
    assert figures["versions"]["pmt"] == pmt.__version__
    assert figures["versions"]["kernels"].startswith(_core.kernels())
    assert figures["extras"]["onnx"] == {"onnx": metadata.version("onnx")}
    assert set(figures["programs"]) == {"arm-none-eabi-g++", "qemu-system-arm", "make"}
    assert figures["models"] == dict.fromkeys(pmt.list_models(), "")
    assert re.search(r"^fashion_mnist_dscnn +loads$", printed.err, re.MULTILINE)
    assert not {"dev", "test", "docs"} & set(figures["extras"])


def test_another_package_of_the_same_module_is_no_missing_one(capsys, monkeypatch):
    def version(package: str) -> str:
        if package == "tensorflow":
            raise metadata.PackageNotFoundError(package)
        return "2.21"

    monkeypatch.setattr(doctor.metadata, "version", version)
    modules = {"tensorflow": ["tensorflow-cpu"]}
    monkeypatch.setattr(doctor.metadata, "packages_distributions", lambda: modules)
    assert main(["doctor"]) == 0
    found = capsys.readouterr().out
    assert re.search(
        r"^extra keras +keras 2\.21, tensorflow 2\.21, tflite 2\.21$", found, re.MULTILINE
    )


def test_what_is_missing_has_its_remedy_and_a_damaged_model_is_an_error(capsys, monkeypatch):
    def missing(package: str) -> str:
        raise metadata.PackageNotFoundError(package)

    def damaged(name: str) -> pmt.Model:
        raise ValueError(f"path={name!r}: the image is damaged")

    monkeypatch.setattr(doctor.metadata, "version", missing)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    monkeypatch.setattr(doctor, "load", damaged)
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert 'missing matplotlib: pip install "poor-mans-training[plot]"' in out
    assert "missing: apt-get install gcc-arm-none-eabi" in out
    assert "path='cifar10_mcunet': the image is damaged" in out
