"""pmt show: what stands where in a contact sheet."""

import errno
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from cifar_files import write_binary_100, write_published
from cli_files import write_data
from frost_overlays import write_overlays
from install_hints import install_hint

import pmt
from pmt._util import atomic_file
from pmt.cli import main
from pmt.corruptions import corrupt, names
from pmt.datasets import Dataset, load, load_corrupted, save_npz
from pmt.sheets import corruption_sheet, dataset_sheet, make_sheet, stage_sheet


def made(labels=(0, 1, 1, 0, 2), side=8, channels=3) -> Dataset:
    images = np.arange(len(labels) * side * side * channels) * 37 % 251
    return Dataset(
        images.astype(np.uint8).reshape(len(labels), side, side, channels),
        np.array(labels),
        ("ant", "bee", "cat", "dog"),
        "insects",
    )


def test_a_data_set_is_a_row_for_each_class():
    data = made()
    sheet = dataset_sheet(data, images=1)
    assert sheet.title == "insects: 5 images 8x8x3"
    assert [(row.label, row.note, len(row.tiles)) for row in sheet.rows] == [
        ("ant", "2 images", 1),
        ("bee", "2 images", 1),
        ("cat", "1 image", 1),
        ("dog", "0 images", 0),
    ]
    assert np.array_equal(sheet.rows[1].tiles[0], data.images[1])
    assert dataset_sheet(data, images=9).columns == 2
    with pytest.raises(ValueError, match="images=0 must be 1 or more"):
        dataset_sheet(data, images=0)


def test_corruptions_are_rows_and_severities_columns():
    calls = []

    def corrupted(name, severity):
        calls.append((name, severity))
        return [np.full((4, 4, 1), 10 * severity + image, np.uint8) for image in (0, 1)]

    originals = [np.full((4, 4, 1), 90 + image, np.uint8) for image in (0, 1)]
    sheet = corruption_sheet(
        corrupted, ("fog", "snow"), (1, 5), captions=("a", "b"), originals=originals
    )
    assert calls == [("fog", 1), ("fog", 5), ("snow", 1), ("snow", 5)]
    assert [row.label for row in sheet.rows] == ["fog", "snow"]
    assert [int(tile[0, 0, 0]) for tile in sheet.rows[1].tiles] == [90, 10, 50, 91, 11, 51]
    assert [group.title for group in sheet.groups] == ["a", "b"]
    assert sheet.groups[0].headings == ("original", "severity 1", "severity 5")


def test_show_of_a_data_set(tmp_path, capsys):
    data = write_data(tmp_path)
    out = tmp_path / "sheet.png"
    assert main(["show", str(data), "--images", "3", "--out", str(out), "--json", "-"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {
        "out": str(out), "rows": ["ant", "bee", "cat", "dog"], "columns": 3, "left_out": {},
    }  # fmt: skip
    assert printed.err == (f"random: 20 test images, 8x8x3\n4 rows of 3 images, in {out}\n")
    assert out.read_bytes()[:4] == b"\x89PNG"


@pytest.fixture
def drawn(monkeypatch):
    """The sheets that the command draws."""
    sheets = []
    monkeypatch.setattr("pmt.cli.show.plot_sheet", sheets.append)
    monkeypatch.setattr("pmt.cli.show.save_plot", lambda axes, path, dpi: None)
    return sheets


def test_show_of_corruptions(tmp_path, capsys, drawn):
    data = write_data(tmp_path)
    chosen = ["--corruptions", "fog,shot_noise", "--severities", "5,1", "--index", "4,2"]
    arguments = ["show", str(data), *chosen, "--seed", "3", "--out", str(tmp_path / "s.png")]
    assert main(arguments) == 0
    sheet = drawn[0]
    clean = load(data, split="test")
    assert sheet.title == "random, test images 4, 2"
    labels = [clean.class_names[clean.labels[index]] for index in (4, 2)]
    assert [group.title for group in sheet.groups] == [f"4: {labels[0]}", f"2: {labels[1]}"]
    assert [row.label for row in sheet.rows] == ["fog", "shot_noise"]
    # As `pmt corrupt --seed 3` makes them: the test split has the next seed.
    whole = corrupt(clean.images, "shot_noise", 5, seed=4)
    tiles = sheet.rows[1].tiles
    assert len(tiles) == 6
    assert np.array_equal(tiles[0], clean.images[4])
    assert np.array_equal(tiles[1], whole[4])
    assert np.array_equal(tiles[4], whole[2])
    assert main([*arguments, "--constants", "imagenet"]) == 0
    stronger = corrupt(clean.images, "shot_noise", 5, seed=4, constants="imagenet")
    assert np.array_equal(drawn[1].rows[1].tiles[1], stronger[4])


def test_without_names_all_corruptions_are_shown(tmp_path, capsys, drawn, monkeypatch):
    write_overlays(tmp_path / "frost")
    monkeypatch.setenv("PMT_DATA", str(tmp_path))
    monkeypatch.setattr("pmt.corruptions.corrupt", lambda images, *arguments, **options: images)
    data = write_data(tmp_path)
    assert main(["show", str(data), "--corruptions", "--out", str(tmp_path / "s.png")]) == 0
    (sheet,) = drawn
    assert tuple(row.label for row in sheet.rows) == names()
    assert sheet.groups[0].headings == (
        "original", "severity 1", "severity 2", "severity 3", "severity 4", "severity 5",
    )  # fmt: skip
    assert sheet.title.startswith("random, test image 0 (")


def test_frost_is_left_out_of_all_without_its_photographs(tmp_path, capsys, drawn, monkeypatch):
    monkeypatch.delenv("PMT_DATA", raising=False)
    command = ["show", str(write_data(tmp_path)), "--out", str(tmp_path / "s.png")]
    assert main([*command, "--corruptions", "--severities", "1"]) == 0
    (sheet,) = drawn
    assert [row.label for row in sheet.rows] == [name for name in names() if name != "frost"]
    assert capsys.readouterr().out.splitlines()[-2:] == [
        f"18 rows of 2 images, in {tmp_path / 's.png'}",
        "left out: frost needs the photographs frost1.png, frost2.png, frost3.png, frost4.jpg, "
        "frost5.jpg: get them from "
        "https://github.com/hendrycks/robustness/tree/master/ImageNet-C/create_c, put them into a "
        "folder frost and set PMT_DATA to the folder that it is in",
    ]
    assert main([*command, "--corruptions", "frost"]) == 2
    assert capsys.readouterr().err.startswith("pmt: error: frost needs the photographs ")


def test_stored_arrays_are_shown_as_they_are(tmp_path, drawn):
    folder = write_published(tmp_path / "CIFAR-10-C")
    out = str(tmp_path / "s.png")
    assert main(["show", str(folder), "--corruptions", "--index", "1", "--out", out]) == 0
    assert [row.label for row in drawn[0].rows] == ["fog", "jpeg_compression"]
    assert drawn[0].title == f"{folder}, test image 1 (ship)"
    assert len(drawn[0].groups[0].headings) == 5
    expected = load_corrupted(folder, "fog", 4).images[1]
    assert np.array_equal(drawn[0].rows[0].tiles[3], expected)


def test_stored_arrays_stand_in_the_order_of_cifar_10_c_and_unknown_ones_last(tmp_path, drawn):
    folder = write_published(tmp_path / "c")
    for name in ("brightness", "aurora"):
        (folder / f"{name}.npy").write_bytes((folder / "fog.npy").read_bytes())
    assert main(["show", str(folder), "--corruptions", "--out", str(tmp_path / "s.png")]) == 0
    assert [row.label for row in drawn[0].rows] == [
        "fog", "brightness", "jpeg_compression", "aurora",
    ]  # fmt: skip


def test_the_clean_images_stand_beside_the_arrays(tmp_path, drawn):
    write_binary_100(tmp_path / "cifar-100-binary")
    write_published(tmp_path / "CIFAR-100-C", labels=(8,))
    out = str(tmp_path / "s.png")
    common = ["show", str(tmp_path), "--corruptions", "fog", "--out", out]
    assert main(common) == main([*common, "--coarse-labels"]) == 0
    assert [sheet.title.partition(", ")[2] for sheet in drawn] == [
        "test image 0 (bicycle)",
        "test image 0 (vehicles_1)",
    ]
    assert drawn[0].groups[0].headings[0] == "original"
    assert not drawn[0].rows[0].tiles[0].any()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--out", "s.jpg"], "--out s.jpg: the suffix must be .png, .svg or .pdf"),
        (["--out", "no/s.png"], "--out no/s.png: its folder does not exist; create it"),
        (["--severities", "1"], "--severities needs --corruptions"),
        (["--constants", "imagenet"], "--constants needs --corruptions"),
        (["--index", "1"], "--index needs --corruptions"),
        (
            ["--corruptions", "fog", "--severities", "0,1,six"],
            "--severities '0', 'six': give some of 1,2,3,4,5",
        ),
        (["--corruptions", "fog", "--index", "0,20,x"], "--index '20', 'x': must be 0 to 19"),
        (
            ["--corruptions", "fog", "--index", "0", "--images", "2"],
            "--images and --index exclude each other: leave one out",
        ),
        (["--corruptions", "smog"], "--corruptions 'smog' is unknown; choose all, or some of"),
        (
            ["--model", "fashion_mnist_dscnn", "--size", "8"],
            "--model and --size exclude each other: leave one out",
        ),
        (["--split", "valid"], "--split='valid' is unknown; choose one of train, test"),
    ],
)
def test_bad_arguments(tmp_path, capsys, monkeypatch, more, message):
    data = write_data(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["show", str(data), "--out", "sheet.png", *more]) == 2
    assert capsys.readouterr().err.startswith(f"pmt: error: {message}")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]


def test_images_stand_above_what_the_network_reads_of_them(tmp_path, capsys, drawn):
    stage = pmt.InputStage((20, 24), (pmt.Filter("switching_median", 0),))
    model = pmt.load("fashion_mnist_dscnn").with_input_stage(stage)
    model.save(tmp_path / "m.pmt")
    out = tmp_path / "s.png"
    command = ["show", "bundled", "--model", str(tmp_path / "m.pmt"), "--out", str(out)]
    assert main([*command, "--corruptions", "impulse_noise", "--severities", "1,5"]) == 0
    assert capsys.readouterr().out == (
        f"bundled, test images, behind switching_median 0\n4 rows of 8 images, in {out}\n"
    )
    rows = drawn[0].rows
    assert [row.label for row in rows[::2]] == ["impulse_noise 1", "impulse_noise 5"]
    assert {(row.label, row.note) for row in rows[1::2]} == {("network input", str(stage))}
    assert rows[0].tiles[0].shape == (20, 24, 1)
    assert rows[1].tiles[0].shape == (28, 28, 1)
    noisy, filtered = (np.concatenate(rows[k].tiles, axis=1).std() for k in (2, 3))
    assert filtered < noisy
    assert main([*command[:3], "fashion_mnist_dscnn", *command[4:], "--images", "2"]) == 0
    before, after = drawn[1].rows
    assert (before.tiles[1] == after.tiles[1]).all()  # no stage: every pixel as it is
    assert drawn[1].title == "bundled, test images, behind no input stage"


def test_a_sheet_of_a_stage_leaves_frost_out_as_others_do(monkeypatch):
    monkeypatch.delenv("PMT_DATA", raising=False)
    tiles = []
    model = pmt.load("fashion_mnist_dscnn")
    sheet = make_sheet(
        "bundled",
        model=model,
        corruptions="all",
        severities=(2,),
        images=1,
        progress=lambda done, tiles_in_all, name: tiles.append((done, tiles_in_all, name)),
    )
    assert "frost" in sheet.left_out
    assert len(sheet.rows) == 2 * (len(names()) - 1)
    assert tiles[-1][:2] == (len(names()) - 1, len(names()) - 1)


def test_a_sheet_of_a_stage_shows_pixels_alone():
    model = pmt.load("fashion_mnist_dscnn")
    floats = Dataset.unlabeled(np.zeros((2, 28, 28, 1), np.float32))
    with pytest.raises(TypeError, match="a sheet shows images of uint8 pixels"):
        stage_sheet({"x": floats}, model)
    with pytest.raises(ValueError, match="must hold the images of a row or more"):
        stage_sheet({}, model)


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    data = tmp_path / "x.npz"
    save_npz(made(), data)

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(atomic_file.os, "fsync", full)
    assert main(["show", str(data), "--out", str(tmp_path / "s.png")]) == 2
    assert os.listdir(tmp_path) == ["x.npz"]


def test_a_missing_matplotlib_is_named(tmp_path, capsys, monkeypatch):
    data = tmp_path / "x.npz"
    save_npz(made(), data)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["show", str(data), "--out", str(tmp_path / "s.png")]) == 2
    assert capsys.readouterr().err == (
        f"pmt: error: plots need matplotlib: {install_hint('plot')}\n"
    )


def test_corrupted_arrays_keep_their_size(tmp_path, capsys):
    folder = write_published(tmp_path / "CIFAR-10-C")
    out = str(tmp_path / "s.png")
    assert main(["show", str(folder), "--corruptions", "--size", "8", "--out", out]) == 2
    assert "--size 8: " in capsys.readouterr().err
    assert not Path(out).exists()
