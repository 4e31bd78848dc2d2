"""Decoding image files: kinds of pixels, sizes, crops, threads, and what cannot be decoded."""

import os
import signal
import sys
import threading
import time
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from problems import problem_of

from pmt.datasets import image_files, load

MODULE = import_module("pmt.datasets.image_files")
RED, GREEN, BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)


def quarters(height: int = 8, width: int = 12) -> Image.Image:
    """Red and green above, blue and black below."""
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[: height // 2, : width // 2] = RED
    pixels[: height // 2, width // 2 :] = GREEN
    pixels[height // 2 :, : width // 2] = BLUE
    return Image.fromarray(pixels)


def one(tmp_path: Path, picture: Image.Image, name: str = "a.png", **options: object) -> np.ndarray:
    path = tmp_path / "data" / "class" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.save(path, **options)
    return load(tmp_path / "data").images


def corners(image: np.ndarray) -> list[list[int]]:
    """Top left, top right, bottom left, bottom right, each channel rounded to 0 or 255."""
    points = image[[1, 1, -2, -2], [1, -2, 1, -2]]
    return (np.where(points > 127, 255, 0)).tolist()


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P", "CMYK"])
@pytest.mark.parametrize("suffix", [".png", ".jpg", ".webp", ".gif", ".tif", ".bmp", ".ppm"])
def test_every_kind_of_color_becomes_rgb(tmp_path, mode, suffix):
    can_hold = {
        ".png": ("RGB", "RGBA", "P"),
        ".jpg": ("RGB", "CMYK"),
        ".webp": ("RGB", "RGBA"),
        ".gif": ("P",),
        ".tif": ("RGB", "RGBA", "P", "CMYK"),
        ".bmp": ("RGB", "P"),
        ".ppm": ("RGB",),
    }
    kind = mode if mode in can_hold[suffix] else can_hold[suffix][0]
    images = one(tmp_path, quarters(32, 48).convert(kind), f"a{suffix}")
    assert images.shape == (1, 32, 48, 3)
    assert corners(images[0]) == [list(RED), list(GREEN), list(BLUE), [0, 0, 0]]


@pytest.mark.parametrize("mode", ["L", "LA", "1"])
def test_gray_stays_one_channel_unless_another_image_has_color(tmp_path, mode):
    gray = Image.fromarray(np.array([[0, 255, 0], [255, 0, 255]], np.uint8)).convert(mode)
    assert one(tmp_path, gray)[..., 0].tolist() == [[[0, 255, 0], [255, 0, 255]]]
    images = one(tmp_path, Image.new("RGB", (3, 2), RED), "b.png")
    assert images.shape == (2, 2, 3, 3)
    assert images[0, 0].tolist() == [[0, 0, 0], [255, 255, 255], [0, 0, 0]]


def test_a_limit_does_not_change_the_channels(tmp_path):
    for index in range(6):
        one(tmp_path, Image.new("L", (3, 2), index), f"{index}.png")
    assert load(tmp_path / "data", limit=1).images.shape == (1, 2, 3, 1)
    one(tmp_path, Image.new("RGB", (3, 2), RED), "colored.png")
    for limit in range(1, 8):
        assert load(tmp_path / "data", limit=limit).images.shape == (limit, 2, 3, 3)
    assert load(tmp_path / "data", limit=1).images[0, 0, 0].tolist() == [3, 3, 3]


def test_transparency_is_dropped(tmp_path):
    assert one(tmp_path, Image.new("RGBA", (2, 2), (1, 2, 3, 0)))[0, 0, 0].tolist() == [1, 2, 3]


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".webp", ".tif"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_turns_the_image_upright(tmp_path, suffix, orientation):
    # As a camera stores it: the upright picture, transposed the other way round.
    inverse = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    stored = quarters(32, 48)
    if orientation > 1:
        stored = stored.transpose(inverse[orientation])
    exif = Image.Exif()
    exif[0x0112] = orientation
    images = one(tmp_path, stored, f"a{suffix}", exif=exif)
    assert images.shape == (1, 32, 48, 3)
    assert corners(images[0]) == [list(RED), list(GREEN), list(BLUE), [0, 0, 0]]
    # A large JPEG is halved by its decoder: the box and the turn must fit that.
    small = load(tmp_path / "data", size=(4, 6), crop=0.75).images[0]
    assert corners(small) == [list(RED), list(GREEN), list(BLUE), [0, 0, 0]]


def test_crop_takes_the_middle_in_the_shape_wanted(tmp_path):
    picture = Image.new("RGB", (40, 20), RED)
    picture.paste(GREEN, (10, 0, 30, 20))
    picture.paste(BLUE, (15, 5, 25, 15))
    one(tmp_path, picture)
    folder = tmp_path / "data"
    stretched = load(folder, size=20).images[0]
    assert stretched[10, [0, 19]].tolist() == [list(RED), list(RED)]
    whole = load(folder, size=20, crop=1).images[0]
    assert whole[0, [0, 19]].tolist() == [list(GREEN), list(GREEN)]
    assert whole[10, 10].tolist() == list(BLUE)
    half = load(folder, size=10, crop=0.5).images[0]
    np.testing.assert_array_equal(half, np.broadcast_to(np.array(BLUE, np.uint8), (10, 10, 3)))
    wide = load(folder, size=(5, 20), crop=1).images[0]
    assert wide[2, [0, 19]].tolist() == [list(RED), list(RED)]


def test_crop_applies_to_arrays_too(tmp_path):
    images = np.zeros((2, 8, 8, 1), np.uint8)
    images[:, 2:6, 2:6] = 200
    np.savez(tmp_path / "a.npz", images=images, labels=[0, 1])
    assert load(tmp_path / "a.npz", size=4, crop=0.5).images.tolist() == [[[[200]] * 4] * 4] * 2
    assert load(tmp_path / "a.npz", size=8, crop=1).images.tolist() == images.tolist()
    assert load(tmp_path / "a.npz", limit=1).images.shape == (1, 8, 8, 1)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"crop": 0.5}, ValueError, "crop=0.5: needs a size to crop to"),
        ({"crop": 0, "size": 4}, ValueError, "crop=0 must be above 0 and at most 1"),
        ({"crop": 1.5, "size": 4}, ValueError, "crop=1.5 must be above 0 and at most 1"),
        ({"crop": "half", "size": 4}, TypeError, "crop='half' must be a number"),
        ({"threads": -1}, ValueError, "threads must be 0"),
    ],
)
def test_bad_options(tmp_path, options, error, message):
    one(tmp_path, quarters())
    with pytest.raises(error, match=message):
        load(tmp_path / "data", **options)  # type: ignore[arg-type]


def test_the_jpeg_shortcut_changes_little(tmp_path):
    """The decoder halves a large JPEG; the result stays near that of a full decode."""
    y, x = np.mgrid[0:600, 0:800]
    pixels = np.stack([128 + 100 * np.sin(x / 37), 128 + 100 * np.cos(y / 23), x / 4], -1)
    picture = Image.fromarray(pixels.astype(np.uint8))
    one(tmp_path, picture, "a.jpg", quality=95)
    fast = load(tmp_path / "data", size=64).images[0].astype(int)
    full = np.asarray(
        Image.open(tmp_path / "data" / "class" / "a.jpg").resize(
            (64, 64), Image.Resampling.BILINEAR
        )
    ).astype(int)
    assert abs(fast - full).max() <= 6
    assert abs(fast - full).mean() < 1


def many(folder: Path, count: int) -> Path:
    for number in range(count):
        path = folder / f"class{number % 3}" / f"{number:03d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (6, 4), (number, 255 - number, 7)).save(path)
    return folder


def test_any_number_of_threads_gives_the_same(tmp_path):
    many(tmp_path, 50)
    alone = load(tmp_path, threads=1, size=3)
    together = load(tmp_path, threads=4, size=3)
    np.testing.assert_array_equal(alone.images, together.images)
    assert alone.labels.tolist() == [0] * 17 + [1] * 17 + [2] * 16
    assert alone.images[:3, 0, 0, 0].tolist() == [0, 3, 6]


@pytest.mark.parametrize("allowed", [0, 1])
def test_images_are_decoded_where_no_thread_starts(allowed, tmp_path, monkeypatch):
    many(tmp_path, 50)
    there = load(tmp_path, threads=1, size=3)
    real, starts = threading.Thread.start, iter(range(allowed))

    def start(thread: threading.Thread) -> None:
        if next(starts, None) is None:
            raise RuntimeError("can't start new thread")
        real(thread)

    monkeypatch.setattr(MODULE, "thread_count", lambda threads: 4)
    monkeypatch.setattr(threading.Thread, "start", start)
    np.testing.assert_array_equal(load(tmp_path, threads=4, size=3).images, there.images)


def test_all_problems_in_one_error(tmp_path):
    many(tmp_path, 50)
    for number in range(0, 36, 3):
        (tmp_path / "class0" / f"{number:03d}.png").write_bytes(b"no image")
    Image.new("RGB", (4, 6)).save(tmp_path / "class1" / "001.png")
    Image.new("I;16", (6, 4)).save(tmp_path / "class1" / "004.png")
    with pytest.raises(ValueError, match=r": 14 problems: class0/000.png: cannot be") as caught:
        load(tmp_path, threads=3)
    text = str(caught.value)
    assert text.startswith(str(tmp_path))
    assert text.count("cannot be decoded") == 10
    assert "; and 4 more; replace or remove this file; give one size for all" in text
    assert "convert it to 8 bits" in text


def test_empty_and_unlisted_class_folders_in_one_error(tmp_path):
    many(tmp_path, 3)
    for name in ("empty1", "empty2"):
        (tmp_path / name).mkdir()
    with pytest.raises(ValueError, match=r"2 problems: empty1: the class folder holds no image; e"):
        load(tmp_path)
    with pytest.raises(ValueError, match=r"5 problems: .*'empty2' is not in class_names"):
        load(tmp_path, class_names=("class0", "class1", "class2", "class3"))


def test_a_decompression_bomb_is_told_from_an_image(tmp_path, monkeypatch):
    many(tmp_path, 2)
    for limit in (20, 10):  # 24 pixels: Pillow warns above its limit, and refuses above twice it
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
        with pytest.raises(ValueError, match=rf"2 problems: .*000.png: has more than {limit} pix"):
            load(tmp_path)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
    assert len(load(tmp_path)) == 2


def test_more_images_than_memory(tmp_path, monkeypatch):
    many(tmp_path, 3)
    told = tmp_path / "meminfo"
    told.write_text("MemTotal: 9 kB\nMemAvailable:       3000 kB\n")
    monkeypatch.setattr(MODULE, "MEMORY_INFO", told)
    with pytest.raises(ValueError, match=r"3 images of 1000x1000x3 take 0.0 GB, 0.0 GB .*limit=N"):
        load(tmp_path, size=1000)
    assert len(load(tmp_path, size=10)) == 3
    told.unlink()
    assert MODULE.free_memory() is None


def test_interrupted_decoding_ends_at_once(tmp_path, monkeypatch):
    files = image_files(many(tmp_path, 150))
    begun = []

    def interrupt(path: Path, *_: object) -> np.ndarray:
        begun.append(path)
        if len(begun) == 20:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.005)
        return np.zeros((4, 6, 3), np.uint8)

    monkeypatch.setattr(MODULE, "decoded", interrupt)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
    try:
        with pytest.raises(KeyboardInterrupt):
            files.read(threads=1)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(begun) < 80
    assert not [t for t in threading.enumerate() if t.name.startswith("pmt-decode")]


def test_without_pillow_no_file_is_touched(tmp_path, monkeypatch):
    files = image_files(many(tmp_path, 2))
    assert files.labels.tolist() == [0, 1]
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "poor-mans-training\[data\]"'):
        files.read()


def test_truncated_and_flipped_images_never_escape_as_another_error(tmp_path):
    generator = np.random.default_rng(0)
    noise = Image.fromarray(generator.integers(0, 256, (24, 24, 3), np.uint8))
    for suffix in (".jpg", ".png", ".webp", ".gif", ".tif", ".bmp"):
        path = tmp_path / suffix[1:] / "class" / f"a{suffix}"
        path.parent.mkdir(parents=True)
        noise.save(path)
        whole = path.read_bytes()
        for position in generator.integers(0, len(whole), 12):
            flipped = bytearray(whole)
            flipped[position] ^= 1 << int(generator.integers(8))
            for content in (whole[:position], bytes(flipped)):
                path.write_bytes(content)
                problem = problem_of(load, path.parents[1])
                assert problem is None or f"a{suffix}: " in problem
