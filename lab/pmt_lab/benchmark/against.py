"""The same network in other engines: times in turns with pmt's own, and whether outputs agree."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pmt.model import Model
from pmt_lab.benchmark.forward import random_images
from pmt_lab.benchmark.rivals import Rival
from pmt_lab.benchmark.timing import Machine, take_turns

_PMT = "pmt"
_CHECKED_IMAGES = 100


def compare_forwards(
    model: Model, machine: Machine, rivals: Sequence[Rival], *, images: Sequence[int], repeat: int
) -> list[dict[str, Any]]:
    """Time the forward in every engine, with every number of images and of threads.

    Several images are given to a rival at once and one by one; its better time counts. ``ratio`` is
    its time over pmt's in the same run.
    """
    times = []
    for count in images:
        batch = random_images(model, count)
        for threads in machine.peak_gmacs:
            functions: dict[tuple[str, int], Callable[[], object]] = {
                (_PMT, count): functools.partial(model.core.logits, batch, threads)
            }
            for rival in rivals:
                functions |= _runners(rival, batch, threads)
            medians = take_turns(functions, repeat=repeat)
            for engine in dict.fromkeys(name for name, _ in functions):
                seconds = min(value for (name, _), value in medians.items() if name == engine)
                microseconds = seconds / count * 1e6
                record = {"engine": engine, "images": count, "threads": threads}
                record |= {"microseconds": microseconds, "gmacs": model.macs / microseconds / 1e3}
                times.append({**record, "ratio": seconds / medians[_PMT, count]})
    return times


def _runners(
    rival: Rival, images: npt.NDArray[np.int8], threads: int
) -> dict[tuple[str, int], Callable[[], object]]:
    runners: dict[tuple[str, int], Callable[[], object]] = {
        (rival.title, 1): rival.runner(images, 1, threads)
    }
    if len(images) > 1 and rival.takes_batches:
        runners[rival.title, len(images)] = rival.runner(images, len(images), threads)
    return runners


def outputs_agree(model: Model, rivals: Sequence[Rival]) -> list[dict[str, Any]]:
    """Compare every engine's outputs with pmt's int8 outputs on random images.

    ``top1`` is the share of images for which its best class is one of pmt's best, ``equal`` the
    share of equal outputs, ``largest`` the largest difference in output steps; both None where the
    engine gives other numbers than the network's int8 output.
    """
    images = random_images(model, _CHECKED_IMAGES, seed=1)
    expected = _int8_outputs(model, images)
    best = expected.max(1)
    found = []
    for rival in rivals:
        outputs = rival.runner(images, 1, 1)()
        chosen = np.take_along_axis(expected, outputs.argmax(1)[:, None], 1)[:, 0]
        record: dict[str, Any] = {"engine": rival.title, "images": len(images)}
        record |= {"top1": float((chosen == best).mean()), "equal": None, "largest": None}
        values = rival.int8_outputs(outputs)
        if values is not None:
            difference = np.abs(values.astype(np.int64) - expected)
            record["equal"] = float((difference == 0).mean())
            record["largest"] = int(difference.max())
        found.append(record)
    return found


def _int8_outputs(model: Model, images: npt.NDArray[np.int8]) -> npt.NDArray[np.int64]:
    output = model.core.tensors()[model.core.output_tensor]
    logits = model.core.logits(images, int8_logits=True)
    steps: npt.NDArray[np.int64] = np.rint(logits / np.float32(output["scale"])).astype(np.int64)
    return steps + np.int64(output["zero_point"])
