"""`pmt doctor`: the facts for a report of a problem."""

import json
import re
from importlib import metadata

import pmt
from pmt import _core
from pmt.cli import doctor, main


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
