"""The float network's forward pass, and the noise that quantization adds to it, op by op."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from pmt._util.arrays import Array, DoubleArray, FloatArray, Int8Array, Uint8Array
from pmt._util.checks import check_callable, check_type, kind_of
from pmt.model import Model
from pmt.net.float_graph import FloatGraph, FloatOp, check_images, check_is_float, check_same_ops
from pmt.net.graph import Graph, Tensor
from pmt.net.ops import DEFINITIONS, BaseOp, OpKind, taps

_LARGEST_BATCH = 64
_BATCH_BYTES = 128 * 2**20

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Step:
    """One op of a forward pass: its input and its output, ``(N, H, W, C)`` each."""

    op: FloatOp
    sources: list[FloatArray]
    output: FloatArray


def normalize(graph: FloatGraph, images: Array) -> FloatArray:
    """Turn pixels 0..255, ``(N, H, W, C)``, into the network's float32 input, or copy that.

    Raises
    ------
    ValueError
        If the images are not uint8 of the network's input shape, or there are none; float32, where
        the network reads no pixels.
    """
    check_images(graph, images)
    if not graph.reads_pixels:
        return images.copy()
    mean = np.asarray(graph.input_mean, np.float32)
    std = np.asarray(graph.input_std, np.float32)
    return (images.astype(np.float32) - mean) / std


def float_activations(graph: FloatGraph, inputs: FloatArray) -> list[FloatArray]:
    """Compute every activation and keep all.

    Parameters
    ----------
    graph : FloatGraph
        The network.
    inputs : ndarray of float32, shape (N, H, W, C)
        The network's input, see :func:`normalize`.

    Returns
    -------
    list of ndarray of float32
        One per tensor of the graph, ``(N, H, W, C)`` each.
    """
    check_is_float(graph)
    check_type(
        "inputs", inputs, np.ndarray, "an array of the network's input; normalize() makes it"
    )
    if inputs.ndim != 4 or inputs.shape[1:] != graph.tensors[graph.input].shape or not len(inputs):
        height, width, channels = graph.tensors[graph.input].shape
        raise ValueError(
            f"inputs has shape {inputs.shape}: must be (N, {height}, {width}, {channels}), N at "
            "least 1, as normalize(graph, images) returns"
        )
    known = {graph.input: inputs}
    known.update((step.op.output, step.output) for step in float_steps(graph, inputs))
    return [known[index] for index in range(len(graph.tensors))]


def float_logits(graph: FloatGraph, images: Array) -> FloatArray:
    """Run the network on pixels 0..255 and return only its output, ``(N, classes)``.

    Raises
    ------
    ValueError
        If the images are not uint8 of the network's input shape, or there are none.
    """
    inputs = normalize(graph, images)
    found = inputs
    for step in float_steps(graph, inputs):
        if step.op.output == graph.output:
            found = step.output
    return found.reshape(len(images), -1)


def float_steps(graph: FloatGraph, inputs: FloatArray) -> Iterator[Step]:
    """Run the network op by op; an activation that no later op reads is let go."""
    last_reader = last_readers(graph)
    known = {graph.input: inputs}
    for position, op in enumerate(graph.ops):
        sources = [known[index] for index in op.inputs]
        result = _result(op, sources)
        low, high = op.bounds
        if low > -np.inf or high < np.inf:
            np.clip(result, np.float32(low), np.float32(high), out=result)
        known[op.output] = result.reshape(-1, *graph.tensors[op.output].shape)
        yield Step(op, sources, known[op.output])
        for index in (*op.inputs, op.output):
            if last_reader.get(index, -1) <= position:
                known.pop(index, None)


def last_readers(graph: FloatGraph) -> dict[int, int]:
    """Return, for every tensor that an op reads, the position of the last such op."""
    return {index: place for place, op in enumerate(graph.ops) for index in op.inputs}


def live_elements(graph: FloatGraph) -> int:
    """Return how many values an image has alive at once, at the most, with those being made."""
    last_reader = last_readers(graph)
    sizes = [tensor.elements for tensor in graph.tensors]
    alive = {graph.input}
    most = sizes[graph.input]
    for position, op in enumerate(graph.ops):
        alive.add(op.output)
        most = max(most, sum(sizes[index] for index in alive))
        alive = {index for index in alive if last_reader.get(index, -1) > position}
    return most


def batch_size(graph: FloatGraph) -> int:
    """Return how many images to run at once: at most 64, fewer where activations are large."""
    # An op holds its padded input and one tap's product besides, hence the factor of three.
    bytes_an_image = 3 * 4 * live_elements(graph)
    return int(np.clip(_BATCH_BYTES // bytes_an_image, 1, _LARGEST_BATCH))


def image_batches(
    graph: FloatGraph, images: Array, progress: Progress | None = None
) -> Iterator[Array]:
    """Yield images in batches, and report images done and in all after each."""
    batch = batch_size(graph)
    for first in range(0, len(images), batch):
        yield images[first : first + batch]
        if progress is not None:
            progress(min(first + batch, len(images)), len(images))


def _result(op: FloatOp, sources: list[FloatArray]) -> FloatArray:
    forward = DEFINITIONS[op.kind].forward
    if forward is not None:
        return np.asarray(forward(op, sources))
    x = sources[0]
    assert op.weights is not None  # checked by quantize_graph()
    if op.kind == "conv2d":
        total = _convolve(x, op.weights, op)
    elif op.kind == "depthwise_conv2d":
        total = _convolve_depthwise(x, op.weights, op)
    else:
        total = x.reshape(len(x), -1) @ op.weights.T
    if op.bias is not None:
        total += op.bias
    return total


def _convolve(x: Array, weights: Array, op: BaseOp) -> Array:
    """Sums of a ``conv2d`` without bias: ``(N, H, W, in)`` to ``(N, OH, OW, out)``."""
    terms = (tap @ weights[:, row, column, :].T for row, column, tap in taps(x, op, 0))
    total: Array = next(terms)
    for term in terms:
        total += term
    return total


def _convolve_depthwise(x: Array, weights: Array, op: BaseOp) -> Array:
    """Sums of a ``depthwise_conv2d`` without bias; output ``c`` reads input ``c // multiplier``."""
    multiplier = weights.shape[-1] // x.shape[-1]
    if multiplier > 1:
        x = np.repeat(x, multiplier, axis=-1)
    windows = taps(x, op, 0)
    row, column, tap = next(windows)
    total: Array = tap * weights[row, column]
    term = np.empty_like(total)
    for row, column, tap in windows:
        total += np.multiply(tap, weights[row, column], out=term)
    return total


@dataclass(frozen=True)
class OpNoise:
    """Noise in one op's output, against the float network, accumulated from the input on."""

    name: str
    kind: OpKind
    signal_to_noise: float
    """In dB: 10 log10 of mean square activation by mean square error; infinite without error."""


def signal_to_noise(
    float_graph: FloatGraph, graph: Graph, images: Array, *, progress: Progress | None = None
) -> list[OpNoise]:
    """Compare every activation of the int8 network with the float network's.

    Parameters
    ----------
    float_graph : FloatGraph
        The network before quantization; the equalized one, where it was equalized.
    graph : Graph
        Graph that :func:`quantize_graph` made of it.
    images : ndarray of uint8, shape (N, H, W, C)
        Pixels 0..255; 100 images are plenty. They run in batches, so that memory is bounded.
    progress : callable, optional
        Called after every batch as ``progress(images_done, images_in_all)``.

    Returns
    -------
    list of OpNoise
        One per op, in execution order. ``format_noise`` makes a table of it.

    Raises
    ------
    ValueError
        If the images do not fit, or the graphs do not have the same ops.
    """
    check_same_ops(float_graph, graph)
    check_images(float_graph, images)
    check_callable("progress", progress)
    powers = np.zeros((len(graph.ops), 2))
    for part in image_batches(float_graph, images, progress):
        powers += _powers(float_graph, graph, part)
    return [
        OpNoise(op.name, op.kind, _decibel(signal, noise))
        for op, (signal, noise) in zip(graph.ops, powers, strict=True)
    ]


def _check_report(report: object) -> None:
    is_report = isinstance(report, list) and all(isinstance(op, OpNoise) for op in report)
    if not is_report:
        raise TypeError(f"report is {kind_of(report)}: must be what signal_to_noise() returns")


def worst(report: list[OpNoise]) -> OpNoise:
    """Return the op with the least ratio of signal to noise, the first of equals."""
    _check_report(report)
    if not report:
        raise ValueError("report is empty: signal_to_noise() makes one of a network")
    return min(report, key=lambda op: op.signal_to_noise)


def format_noise(report: list[OpNoise]) -> str:
    """Format a report as a table: op, kind, signal-to-noise ratio in dB."""
    _check_report(report)
    width = max([2, *(len(op.name) for op in report)])
    lines = [f"{'op':{width}}  {'kind':16}  {'SNR/dB':>6}"]
    lines += [f"{op.name:{width}}  {op.kind:16}  {op.signal_to_noise:6.1f}" for op in report]
    return "\n".join(lines)


def integer_activations(graph: Graph, images: Uint8Array) -> list[Int8Array]:
    """Run the network and keep every activation.

    Parameters
    ----------
    graph : Graph
        The int8 network.
    images : ndarray of uint8, shape (N, H, W, C)
        Pixels 0..255.

    Returns
    -------
    list of ndarray of int8
        One per tensor of the graph, ``(N, H, W, C)`` each; the input is among them.
    """
    check_type("images", images, np.ndarray, "an array of images (N, H, W, C)")
    if not images.size:
        raise ValueError(f"images has shape {images.shape}: must hold at least one image")
    model = Model.from_graph(graph)
    per_image = [model.core.activations(image) for image in model.prepare(images)]
    return [np.stack(tensors) for tensors in zip(*per_image, strict=True)]


def _powers(float_graph: FloatGraph, graph: Graph, images: Array) -> DoubleArray:
    """Sums of squares of signal and noise, ``(ops, 2)``."""
    inputs = normalize(float_graph, images)
    quantized = integer_activations(graph, images)
    powers = []
    for step in float_steps(float_graph, inputs):
        index = step.op.output
        noise = real_values(graph.tensors[index], quantized[index]) - step.output
        powers.append([_power(step.output), _power(noise)])
    return np.array(powers)


def real_values(tensor: Tensor, values: Int8Array) -> FloatArray:
    """Return ``scale * (q - zero_point)`` for the int8 values of an activation."""
    real = (values.astype(np.float32) - np.float32(tensor.zero_point)) * np.float32(tensor.scale)
    return np.asarray(real, np.float32)


def _power(values: FloatArray) -> float:
    return float(np.sum(values.astype(np.float64) ** 2))


def _decibel(power: float, noise: float) -> float:
    if noise == 0.0:
        return float("inf")
    return float(10.0 * np.log10(power / noise)) if power > 0.0 else float("-inf")
