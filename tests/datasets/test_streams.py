"""Streams become data sets in files: one pass, gone on with after an interruption, never half."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pmt._util.folder_lock import FolderLock
from pmt.datasets import Dataset, from_stream
from pmt.datasets.mapped import is_mapped
from pmt.datasets.stream_cache import StreamCache

rng = np.random.default_rng(0)
IMAGES = rng.integers(0, 256, (60, 6, 5, 3)).astype(np.uint8)
LABELS = np.arange(60) % 7
Taken = list[int]


def samples(taken: Taken | None = None, *, fails_at: int = -1) -> Iterator[tuple[np.ndarray, int]]:
    """The samples one by one, for ever."""
    for number in itertools.count():
        if number == fails_at:
            raise OSError("the camera is gone")
        if taken is not None:
            taken.append(number)
        yield IMAGES[number % 60], int(LABELS[number % 60])


def batches(size: int = 25) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for first in range(0, 60, size):
        yield IMAGES[first : first + size], LABELS[first : first + size]


def assert_holds(data: Dataset, numbers: range) -> None:
    assert is_mapped(data.images)
    np.testing.assert_array_equal(data.images, IMAGES[np.array(numbers) % 60])
    np.testing.assert_array_equal(data.labels, LABELS[np.array(numbers) % 60])


def test_batches_and_samples_give_the_same_data_set(tmp_path: Path) -> None:
    data = from_stream(batches(), tmp_path / "batches")
    assert_holds(data, range(60))
    assert repr(data) == "Dataset('stream', 60 images 6x5x3, 7 classes)"
    assert_holds(from_stream(samples(), tmp_path / "samples", limit=60), range(60))
    both = [(tmp_path / name / "images.bin").read_bytes() for name in ("batches", "samples")]
    assert both[0] == both[1]
    assert not list(tmp_path.glob("*.lock"))


def test_an_endless_stream_ends_at_the_limit_and_goes_on_at_a_larger_one(tmp_path: Path) -> None:
    taken: Taken = []
    assert_holds(from_stream(samples(taken), tmp_path / "c", limit=20), range(20))
    assert taken == list(range(20))
    assert_holds(from_stream(samples(taken), tmp_path / "c", limit=8), range(8))
    assert taken == list(range(20))  # nothing is read of it
    assert_holds(from_stream(lambda: samples(taken), tmp_path / "c", limit=70), range(70))
    assert taken == [*range(20), *range(70)]  # the first were passed over
    assert_holds(from_stream([], tmp_path / "c", limit=70), range(70))


def test_a_callable_with_an_argument_begins_where_the_folder_ends(tmp_path: Path) -> None:
    begun = []

    def source(first: int) -> Iterator[Any]:
        begun.append(first)
        return itertools.islice(samples(), first, 50)

    from_stream(source, tmp_path / "c", limit=12)
    assert_holds(from_stream(source, tmp_path / "c"), range(50))
    assert_holds(from_stream(source, tmp_path / "c"), range(50))
    assert begun == [0, 12]


def test_an_argument_with_a_default_is_the_callers_own(tmp_path: Path) -> None:
    def frames(speed: int = 2, *_: object, **__: object) -> Iterator[Any]:
        return itertools.islice(samples(), 0, None, speed)

    from_stream(frames, tmp_path / "c", limit=4)
    assert_holds(from_stream(frames, tmp_path / "c", limit=8), range(0, 16, 2))


def test_a_generator_that_has_begun_cannot_go_on(tmp_path: Path) -> None:
    source = itertools.islice(samples(), 10)
    generator = (pair for pair in source)
    from_stream(generator, tmp_path / "c", limit=4)
    message = (
        "stream is a generator that has begun already, and the folder's 4 samples are to be passed "
        "over: give a new one, or a function that returns one"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        from_stream(generator, tmp_path / "c", limit=8)
    assert len(list(source)) == 6
    assert_holds(from_stream(samples(), tmp_path / "c", limit=8), range(8))


def test_a_stream_shorter_than_the_folder_leaves_it_open(tmp_path: Path) -> None:
    from_stream(samples(), tmp_path / "c", limit=6)
    message = (
        "stream ends after 4 samples, and the folder holds 6: give the same stream from its "
        "beginning, or remove the folder"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        from_stream(itertools.islice(samples(), 4), tmp_path / "c", limit=8)
    assert_holds(from_stream(samples(), tmp_path / "c", limit=8), range(8))


def test_a_stream_that_has_ended_is_read_on_at_a_larger_limit(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    assert_holds(from_stream(itertools.islice(samples(), 5), folder, limit=8), range(5))
    assert_holds(from_stream([], folder), range(5))  # without a limit it is whole
    assert_holds(from_stream([], folder, limit=5), range(5))
    message = (
        "stream ends after 3 samples, and the folder holds 5: give the same stream from its "
        "beginning, or remove the folder"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        from_stream(itertools.islice(samples(), 3), folder, limit=10)
    assert_holds(from_stream([], folder), range(5))
    taken: Taken = []
    assert_holds(from_stream(samples(taken), folder, limit=10), range(10))
    assert taken == list(range(10))
    from_stream(samples(), tmp_path / "whole", limit=10)
    both = [(path / "images.bin").read_bytes() for path in (folder, tmp_path / "whole")]
    assert both[0] == both[1]


def test_an_error_after_the_end_leaves_the_folder_open(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    from_stream(itertools.islice(samples(), 5), folder)
    with pytest.raises(OSError, match=r"^the camera is gone$"):
        from_stream(samples(fails_at=7), folder, limit=10)
    assert_holds(from_stream(itertools.islice(samples(), 9), folder), range(9))


def test_a_camera_that_was_off_goes_on(tmp_path: Path) -> None:
    begun = []

    def camera(first: int) -> Iterator[Any]:
        begun.append(first)
        return itertools.islice(samples(), first, first + 4)

    for limit, count in ((8, 4), (8, 4), (10, 8), (10, 8), (12, 12), (12, 12)):
        assert_holds(from_stream(camera, tmp_path / "c", limit=limit), range(count))
    assert begun == [0, 4, 8]


def test_a_stream_that_has_ended_is_not_read_again_at_the_same_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, taken = tmp_path / "c", Taken()
    source = itertools.islice(samples(taken), 20)
    generator = (pair for pair in source)
    assert_holds(from_stream(generator, folder, limit=50), range(20))
    assert json.loads((folder / "stream.json").read_text())["ended_limit"] == 50

    def refused(cache: StreamCache) -> None:
        raise BlockingIOError(f"{cache.path} is locked, or cannot be written")

    monkeypatch.setattr(StreamCache, "locked", refused)
    for again in (generator, source, [], samples(taken)):
        for limit in (50, 21, 20, 0):
            assert_holds(from_stream(again, folder, limit=limit), range(20))
    assert taken == list(range(20))
    with pytest.raises(BlockingIOError, match=r"/c is locked, or cannot be written$"):
        from_stream(samples(), folder, limit=51)


def test_the_end_of_a_stream_in_an_older_folder_holds_for_every_limit(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    from_stream(itertools.islice(samples(), 5), folder)
    described = folder / "stream.json"
    stored = json.loads(described.read_text())
    assert stored.pop("ended_limit") == 5
    described.write_text(json.dumps(stored))
    for limit in (0, 5, 50):
        assert_holds(from_stream([], folder, limit=limit), range(5))


def test_a_stream_that_gave_nothing_may_give_something_later(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^stream gives nothing: "):
        from_stream([], tmp_path / "c")
    assert_holds(from_stream(batches(), tmp_path / "c"), range(60))


def test_a_batch_is_cut_at_the_limit_and_gone_on_with_inside(tmp_path: Path) -> None:
    assert_holds(from_stream(batches(), tmp_path / "c", limit=30), range(30))
    assert_holds(from_stream(batches(7), tmp_path / "c"), range(60))


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_an_error_keeps_what_came_before_it(error: type[BaseException], tmp_path: Path) -> None:
    def source() -> Iterator[Any]:
        yield from itertools.islice(samples(), 33)
        raise error("the camera is gone")

    with pytest.raises(error, match=r"^the camera is gone$"):
        from_stream(source, tmp_path / "c", limit=50)
    taken: Taken = []
    assert_holds(from_stream(samples(taken), tmp_path / "c", limit=33), range(33))
    assert taken == []
    assert_holds(from_stream(samples(), tmp_path / "c", limit=50), range(50))


def test_a_killed_process_leaves_whole_samples(tmp_path: Path) -> None:
    code = (
        "import os, test_streams as t\n"
        "from pmt.datasets import stream_cache\n"
        "stream_cache._SECONDS_BETWEEN_COMMITS = 0.0\n"
        "def source():\n"
        "    yield from t.itertools.islice(t.samples(), 40)\n"
        "    os._exit(9)\n"
        f"t.from_stream(source, {str(tmp_path / 'c')!r}, limit=50)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert (
        subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 9
    )
    with (tmp_path / "c" / "images.bin").open("ab") as file:
        file.write(b"half of a sample")
    state = json.loads((tmp_path / "c" / "stream.json").read_text())
    assert 0 < state["samples"] <= 40
    taken: Taken = []
    assert_holds(from_stream(samples(taken), tmp_path / "c", limit=50), range(50))
    assert len(taken) == 50
    assert (tmp_path / "c" / "images.bin").stat().st_size == 50 * 90


def test_labels_may_be_targets_or_missing(tmp_path: Path) -> None:
    rows = np.arange(12, dtype=np.float64).reshape(6, 2)
    single = from_stream(zip(IMAGES, rows, strict=False), tmp_path / "single")
    assert single.labels.tolist() == rows.tolist()
    assert single.has_targets
    assert repr(single) == "Dataset('stream', 6 images 6x5x3, 2 targets)"
    whole = from_stream([(IMAGES[:4], rows[:4]), (IMAGES[4:6], rows[4:])], tmp_path / "whole")
    assert whole.labels.tolist() == rows.tolist()
    bare = from_stream(((image, None) for image in IMAGES), tmp_path / "bare")
    assert (bare.is_labeled, len(bare)) == (False, 60)


def test_inputs_may_be_floats_or_pictures(tmp_path: Path) -> None:
    pillow = pytest.importorskip("PIL.Image")
    windows = rng.normal(size=(9, 4, 2))
    data = from_stream(zip(windows, range(9), strict=True), tmp_path / "w", features=True)
    assert repr(data) == "Dataset('stream', 9 float32 inputs 1x4x2, 9 classes)"
    np.testing.assert_array_equal(data.images[:, 0], windows.astype(np.float32))
    pictures = [(pillow.fromarray(image), 0) for image in IMAGES[:3]]
    np.testing.assert_array_equal(from_stream(pictures, tmp_path / "p").images, IMAGES[:3])
    small = from_stream(pictures, tmp_path / "small", size=4)
    assert small.images.shape == (3, 4, 4, 3)


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ([], ValueError, "stream gives nothing: a data set holds at least one sample"),
        (
            [(IMAGES[0], 0), (IMAGES[1, :4], 1)],
            ValueError,
            "stream: sample 1 is uint8 4x5x3 with a label of int64, those before it are uint8 "
            "6x5x3 with a label of int64: all must be alike; give size=(height, width) for "
            "pictures",
        ),
        (
            [(IMAGES[0], 0), (IMAGES[1], None)],
            ValueError,
            "stream: sample 1 is uint8 6x5x3 with a label of int8, those before it are uint8 6x5x3 "
            "with a label of int64: all must be alike; give size=(height, width) for pictures",
        ),
        (
            [(IMAGES[:3], [0, 1])],
            ValueError,
            "stream: a batch of 3 inputs has 2 labels: give one for each",
        ),
        (
            [(IMAGES[0], -2)],
            ValueError,
            "label -2 is below 0: number the classes from 0, and give None for a sample without a "
            "label",
        ),
        (
            [(IMAGES[0], [np.nan])],
            TypeError,
            "y is float64: must be integers, the number of each image's class; number names with "
            "class_names, y = numpy.unique(names, return_inverse=True)",
        ),
        (
            [(IMAGES[0], np.array([np.nan]))],
            ValueError,
            "a target is not finite: each must be a number",
        ),
        (
            [IMAGES[0]],
            TypeError,
            "stream gives a ndarray: must be pairs (input, label); give (input, None) for a sample "
            "without a label",
        ),
        (
            [(np.full((4, 4, 3), np.nan), 0)],
            ValueError,
            "stream: float images hold values that are not finite: remove or replace them",
        ),
    ],
)
def test_samples_that_break_a_rule_are_refused(
    source: Any, error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        from_stream(source, tmp_path / "c")


def broken(change: Callable[[Path], None], folder: Path) -> None:
    from_stream(samples(), folder, limit=20)
    change(folder)


def test_folders_that_hold_something_else_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    from_stream(samples(), folder, limit=20, key="monday")
    for changes, shown in (
        ({"key": "tuesday"}, "key: there 'monday', here 'tuesday'"),
        ({"key": "monday", "size": 4}, "size: there 'None', here '(4, 4)'"),
    ):
        message = (
            f"cache={str(folder)!r} holds another stream ({shown}); give another folder, or remove "
            "this one"
        )
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            from_stream(samples(), folder, limit=20, **changes)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.png").touch()
    with pytest.raises(
        ValueError, match="photos: exists and is not a cache of a stream; give another"
    ):
        from_stream(samples(), tmp_path / "photos", limit=20)
    assert os.listdir(tmp_path / "photos") == ["cat.png"]


@pytest.mark.parametrize(
    "change",
    [
        {"samples": -1},
        {"samples": 1e999},
        {"samples": None},
        {"ended": None},
        {"ended_limit": -1},
        {"ended_limit": "50"},
        {"key": []},
        {"key": None},
        {"images": None},
        {"images": None, "labels": None},
        {"images": ["V9", [1]]},
        {"images": ["no dtype", [6, 5, 3]]},
        {"images": ["<f4", [6, -5, 3]]},
        {"images": ["<f1", [6, 5, 3]]},
        {"labels": [None, []]},
        {"labels": 7},
    ],
)
def test_a_description_that_cannot_be_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    from_stream(samples(), tmp_path / "c", limit=20)
    described = tmp_path / "c" / "stream.json"
    described.write_text(json.dumps({**json.loads(described.read_text()), **change}))
    message = "stream.json: is damaged; remove the folder, and the stream is read again"
    with pytest.raises(ValueError, match=f"{re.escape(message)}$"):
        from_stream(samples(), tmp_path / "c", limit=20)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda folder: os.truncate(folder / "images.bin", 1799),
            "images.bin: has 1799 bytes of 1800; remove the folder, and the stream is read again",
        ),
        (
            lambda folder: (folder / "labels.bin").unlink(),
            "labels.bin: has 0 bytes of 160; remove the folder, and the stream is read again",
        ),
        (
            lambda folder: (folder / "stream.json").write_text("{}"),
            "stream.json: is damaged; remove the folder, and the stream is read again",
        ),
    ],
)
def test_damaged_folders_are_refused(
    change: Callable[[Path], None], message: str, tmp_path: Path
) -> None:
    broken(change, tmp_path / "c")
    with pytest.raises(ValueError, match=f"{re.escape(message)}$"):
        from_stream(samples(), tmp_path / "c", limit=20)


def test_one_process_fills_a_folder_and_others_read_it(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    from_stream(samples(), folder, limit=20)
    lock = FolderLock.of_folder(folder)
    code = "import sys, time, pathlib; from pmt._util.folder_lock import FolderLock as L\n"
    code += f"lock = L({str(lock.path)!r}); print(lock.acquire(), flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "True\n"
        assert_holds(from_stream(samples(), folder, limit=20), range(20))
        with pytest.raises(BlockingIOError, match=f"^cache={str(folder)!r} is in use by .*process"):
            from_stream(samples(), folder, limit=21)
        other.communicate()


def test_memory_stays_small_and_so_do_parts_of_the_data_set(tmp_path: Path) -> None:
    image = np.arange(96 * 96 * 3, dtype=np.uint64).astype(np.uint8).reshape(96, 96, 3)
    tracemalloc.start()
    try:
        data = from_stream(((image + i % 7, i % 2) for i in range(3000)), tmp_path / "c")
        first, second = data.split(0.8, seed=1)
        shuffled = first.shuffled(2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert data.images.nbytes > 80_000_000
    assert peak < 30_000_000
    assert is_mapped(first.images)
    assert is_mapped(shuffled.images)
    assert not is_mapped(second[:10].subset([1, 0]).images)
    assert sorted(os.listdir(tmp_path / "c")) == ["images.bin", "labels.bin", "stream.json"]
    order = np.random.Generator(np.random.PCG64(1)).permutation(3000)
    np.testing.assert_array_equal(first.labels, data.labels[order[:2400]])
    for i in (0, 7, 2399):
        np.testing.assert_array_equal(first.images[i], data.images[order[i]])


def test_a_full_disk_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sync = os.fsync

    def full(descriptor: int) -> None:
        images = tmp_path / "c" / "images.bin"
        if images.exists() and os.path.samestat(os.fstat(descriptor), images.stat()):
            raise OSError(28, "No space left on device")
        sync(descriptor)

    monkeypatch.setattr("pmt.datasets.stream_cache.os.fsync", full)
    message = (
        "[Errno 28] could not write sample 20 (No space left on device); free some space, and the "
        f"same call continues from there: '{tmp_path / 'c'}'"
    )
    with pytest.raises(OSError, match=f"^{re.escape(message)}$"):
        from_stream(samples(), tmp_path / "c", limit=20)
    monkeypatch.undo()
    assert_holds(from_stream(samples(), tmp_path / "c", limit=20), range(20))
