"""The linear head solved alone, on features that are computed once.

What the last layer sees does not depend on it: one forward an image gives its features, and the
head that fits them best is a convex problem, softmax regression for the cross-entropy. A network
whose head fits its features is trained from a better start: linear probing, then fine-tuning (Kumar
et al. 2022, arXiv:2202.10054).

The core's solver holds the head to the old one as strongly as cross-validation on the features
favors, leaves classes that no label names as they are, and writes int8 weights with scales of their
own. The int8 output then has a range for the logits of the images that it was solved on.
"""

from dataclasses import dataclass

import numpy as np

from pmt import _core
from pmt._util.arrays import DoubleArray, FloatArray, Int8Array, Int64Array, Uint8Array
from pmt.datasets import Dataset
from pmt.model import Model
from pmt.protocol.stratification import head_folds, units_of
from pmt.quantization.ranges import fit_outputs

_AT_ONCE = 1 << 22  # bytes of images whose features are computed, so that copies stay small


@dataclass(frozen=True)
class HeadWork:
    """The solution of a head, and its work in multiply-accumulates."""

    strength: float  # how strongly the head was held to the old one, above 0
    macs: int  # of the features and of the solution
    choice_macs: int  # of the cross-validation that chose the strength
    loss: float  # mean, on the images that it was solved on
    out_of_fold_loss: float | None  # mean, by cross-validation; None where it chose no strength


def head_op(model: Model) -> int:
    """Return the op of the head: the last, or before a final mean the convolution that it reads.

    A 1x1 convolution and a mean over all positions are a linear layer of the mean features, but for
    the rounding of the convolution's outputs.
    """
    ops = model.core.ops()
    last = len(ops) - 1
    if last < 1 or ops[last]["kind"] != "mean" or ops[last]["inputs"] != (ops[last - 1]["output"],):
        return last
    head = ops[last - 1]
    plain = (head["kernel"], head["stride"], head["padding"]) == ((1, 1), (1, 1), (0, 0, 0, 0))
    unclamped = head["clamp"] == ops[last]["clamp"] == (-128, 127)
    return last - 1 if head["kind"] == "conv2d" and plain and unclamped else last


def has_linear_head(model: Model) -> bool:
    """Whether the logits are linear in the features, but for rounding."""
    return model.core.has_linear_head or _is_before_mean(model)


def head_macs(model: Model, images: int) -> int:
    """Count the least MACs: a forward an image up to the head, then one pass over the features."""
    ops = model.core.ops()[: head_op(model)]
    head = _head_weights(model)
    return images * (sum(int(op["macs"]) for op in ops) + head.size)


def solve_head(
    model: Model,
    data: Dataset,
    *,
    loss: str = "cross_entropy",
    threads: int = 0,
    strength: float | None = None,
) -> HeadWork:
    """Solve the head of a model in place; no other layer changes.

    Where the logits of the images exceed the range of the int8 output, or by cross-entropy use less
    than a quarter of it, that gets another one. Without a strength three folds choose it. The
    result does not depend on the threads; Ctrl-C leaves the model as it was.
    """
    op = head_op(model)
    labels = _labels(data)
    in_folds = _folds(data) if strength is None else None
    inputs = _inputs(model, data, threads)
    features = _features(model, inputs)
    found, macs, choice_macs, loss_of_all, out_of_fold = _core.solve_head(
        model.core, op, features, labels, loss, in_folds, strength or 0.0, threads
    )
    # Targets may be larger than what a head makes of them, and must stay inside the range.
    narrow = loss == "cross_entropy"
    fit_outputs(model, _output_ranges(model, inputs), narrow=narrow)
    before = sum(int(one["macs"]) for one in model.core.ops()[:op])
    return HeadWork(found, macs + len(data) * before, choice_macs, loss_of_all, out_of_fold)


def _labels(data: Dataset) -> Int64Array | FloatArray:
    if data.has_targets:
        return np.ascontiguousarray(data.labels, np.float32)
    return np.ascontiguousarray(data.labels, np.int64)


def _folds(data: Dataset) -> Uint8Array | None:
    labels = data.labels
    if data.has_targets:  # one target may tell two classes
        tells = labels.shape[1] == 1 and np.isin(labels, (0, 1)).all()
        labels = labels[:, 0] if tells else np.zeros(len(data))
    return head_folds(labels, units_of(data))


def _is_before_mean(model: Model) -> bool:
    return head_op(model) < model.core.op_count - 1


def _head_weights(model: Model) -> Int8Array:
    return model.core.weights(head_op(model))


def _inputs(model: Model, data: Dataset, threads: int) -> Int8Array:
    """Compute the inputs of the head, (N, height, width, channels)."""
    rows = max(1, _AT_ONCE // data.images[:1].nbytes)
    parts = [data.images[first : first + rows] for first in range(0, len(data), rows)]
    found = [model.core.inputs(model.prepare(part), head_op(model), threads) for part in parts]
    return found[0] if len(found) == 1 else np.concatenate(found)


def _features(model: Model, inputs: Int8Array) -> Int8Array:
    """Return the features of the head's inputs, (N, features); means where a mean follows it."""
    if _is_before_mean(model):
        means: DoubleArray = inputs.mean(axis=(1, 2))
        return np.rint(means).astype(np.int8)
    return inputs.reshape(len(inputs), -1)


def _output_ranges(model: Model, inputs: Int8Array) -> dict[int, tuple[float, float]]:
    """Return the ranges of the head's output, and of the mean behind it, by their tensors."""
    op = head_op(model)
    record = model.core.ops()[op]
    seen = model.core.tensors()[record["inputs"][0]]
    weights = _head_weights(model).astype(np.float64)
    weights = weights.reshape(len(weights), -1)
    bias, units = model.core.bias(op), seen["scale"] * model.core.weight_scales(op).astype(float)
    found = []
    for part in np.array_split(inputs, 1 + inputs.nbytes // _AT_ONCE):
        # Sums of integers are exact in float64, in whatever order a library takes them.
        real = (part - np.float64(seen["zero_point"])).reshape(len(part), -1, weights.shape[1])
        sums = real @ weights.T + bias
        of_each, mean = sums * units, sums.mean(axis=1) * units
        found.append((of_each.min(), of_each.max(), mean.min(), mean.max()))
    low, high, low_mean, high_mean = np.array(found).T
    ranges = {record["output"]: (float(low.min()), float(high.max()))}
    if _is_before_mean(model):
        ranges[model.core.output_tensor] = (float(low_mean.min()), float(high_mean.max()))
    return ranges
