import errno
import json
import os
import zlib

import numpy as np
import pytest
from cli_files import same_weights, write_data, write_model

import pmt
from pmt._util import atomic_file
from pmt.cli import main


@pytest.fixture
def model(tmp_path):
    return write_model(tmp_path)


def test_the_suffix_is_the_format(model, tmp_path, capsys):
    pytest.importorskip("tflite")
    pytest.importorskip("onnx")
    for name in ("net.tflite", "net.onnx", "net.npz", "net.h", "net.pmt"):
        assert main(["convert", str(model), str(tmp_path / name)]) == 0
    lines = capsys.readouterr().out.splitlines()
    out = tmp_path / "net"
    sizes = {s: f"{(tmp_path / f'net{s}').stat().st_size:,}" for s in (".tflite", ".pmt", ".h")}
    assert lines[:3] == [
        f"{out}.tflite: full-integer TFLite, {sizes['.tflite']} bytes",
        "input   8x8x3: int8 = pixel - 128",
        "output  1x1x4: logit = (int8 - 0) * 0.1",
    ]
    assert lines[9] == f"{out}.h: a C header, {sizes['.h']} bytes"
    assert lines[12] == f"{out}.pmt: a .pmt image, {sizes['.pmt']} bytes"
    assert (tmp_path / "net.pmt").read_bytes() == model.read_bytes()
    assert same_weights(pmt.load(tmp_path / "net.tflite"), pmt.load(model))


def test_figures_as_json(model, tmp_path, capsys):
    out = tmp_path / "net.npz"
    assert main(["convert", str(model), str(out), "--json", "-"]) == 0
    figures = json.loads(capsys.readouterr().out)
    content = out.read_bytes()
    assert figures == {
        "path": str(out),
        "format": "npz",
        "bytes": len(content),
        "crc32": f"{zlib.crc32(content):08x}",
        "into": None,
        "input": {"shape": [8, 8, 3], "scale": 1 / 128, "zero_point": 0},
        "output": {"shape": [1, 1, 4], "scale": float(np.float32(0.1)), "zero_point": 0},
        "input_formula": "int8 = pixel - 128",
    }


def test_a_run_gives_its_trained_model(model, tmp_path, capsys):
    pytest.importorskip("tflite")
    data, run = write_data(tmp_path), tmp_path / "run"
    original, out = tmp_path / "original.tflite", tmp_path / "trained.tflite"
    assert main(["convert", str(model), str(original)]) == 0
    options = ["--layers", "B3,head", "--queries", "4", "--batch", "5", "--epochs", "1"]
    train = ["train", str(original), "--data", str(data), "--out", str(run)]
    assert main([*train, *options, "--limit", "20", "--no-keep-best"]) == 0
    capsys.readouterr()
    assert main(["convert", str(run), str(out), "--into", str(original)]) == 0
    assert capsys.readouterr().out.startswith(
        f"{out}: full-integer TFLite, {original} with these weights, "
    )
    assert len(out.read_bytes()) == len(original.read_bytes())
    assert same_weights(pmt.load(out), pmt.load(run))
    assert not same_weights(pmt.load(out), pmt.load(original))


def test_classes_of_a_pkl(mcunet_path, tmp_path, capsys):
    out = tmp_path / "net.npz"
    options = ["--classes", "7", "--resolution", "96"]
    assert main(["convert", str(mcunet_path), str(out), *options]) == 0
    printed = capsys.readouterr().out
    assert "input   96x96x3: int8 = pixel - 128\noutput  1x1x7: logit = (int8 + 34) *" in printed


def test_a_file_is_replaced_only_when_told(model, tmp_path, capsys):
    out = tmp_path / "net.h"
    out.write_text("mine")
    assert main(["convert", str(model), str(out)]) == 2
    assert capsys.readouterr().err == (
        f"pmt: error: OUT '{out}' exists; choose another name, or add --force\n"
    )
    assert out.read_text() == "mine"
    assert main(["convert", str(model), str(out), "--force"]) == 0
    assert out.read_text().startswith("/*\n * net.h: a .pmt image")


BAD_OUTPUTS = {
    "{folder}/none/net.h": "the folder {folder}/none does not exist; create it",
    "{folder}/small.pmt/net.h": "{folder}/small.pmt is a file; choose a folder",
    "{folder}/folder.h": " is a folder; give a file's name",
    "{folder}/net": "suffix '' is unknown; a model is written as .pmt, .tflite, .onnx, .npz or .h",
    "{folder}/net.bin": "suffix '.bin' is unknown",
}


@pytest.mark.parametrize("out", BAD_OUTPUTS)
def test_a_bad_destination_is_found_before_the_model_is_read(out, tmp_path, model, capsys):
    (tmp_path / "folder.h").mkdir()
    path = out.format(folder=tmp_path)
    assert main(["convert", str(tmp_path / "no model.pmt"), path]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"pmt: error: OUT '{path}'")
    assert BAD_OUTPUTS[out].format(folder=tmp_path) in error


def test_a_full_disk_is_one_line(model, tmp_path, monkeypatch, capsys):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(atomic_file.os, "fsync", full)
    out = tmp_path / "net.h"
    assert main(["convert", str(model), str(out)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"pmt: error: OUT {out}: could not write ")
    assert error.endswith("(No space left on device); the file that was there is unchanged; "
                          "free some space or choose another folder\n")  # fmt: skip
    assert sorted(os.listdir(tmp_path)) == ["small.pmt"]


def test_a_model_of_another_file_is_one_line(model, resnet8_path, tmp_path, capsys):
    pytest.importorskip("tflite")
    out = tmp_path / "net.tflite"
    assert main(["convert", str(model), str(out), "--into", str(resnet8_path)]) == 2
    assert capsys.readouterr().err == (
        f"pmt: error: --into='{resnet8_path}': the model was not imported from this file: it has "
        "15 operations, the model 8; give the file it came from, or convert without --into\n"
    )
    assert not out.exists()
