"""Quantization from memory: a float network of torch and calibration images become a model."""

import inspect
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import Lock
from typing import Any
from unittest import mock

import numpy as np

from pmt import datasets
from pmt._util.arrays import Array
from pmt._util.checks import check_type, checked_flag, checked_range, kind_of
from pmt._util.extras import import_extra
from pmt.datasets import Dataset
from pmt.model import Model
from pmt.net.float_graph import FloatGraph
from pmt.quantization.float_forward import float_logits
from pmt.quantization.post_training import quantize_graph
from pmt.quantization.quantized_model import (
    calibration_inputs,
    errors_of,
    for_inputs,
    given_options,
    named_model,
    names_of_logits,
    read_float_network,
    real_inputs,
)
from pmt.quantization.ranges import RangeMethod, check_method

Shape = tuple[int, ...]
# torch exports one network at a time.
_exporting = Lock()
_COMPARED = 8  # inputs on which the network that was read is compared with the module
_TOLERANCE = 0.01  # of what outputs span over the inputs: int8 resolves about as much
_ROUNDING = 1e-5  # of the largest output, in float32; ten steps of a coarser type


def from_torch(
    module: Any,
    calibration: Any,
    *,
    name: str = "",
    limit: int = 512,
    features: bool = False,
    ranges: RangeMethod = "mse",
    equalize: bool = True,
    bias_correction: bool = True,
    input_mean: float | tuple[float, ...] | None = None,
    input_std: float | tuple[float, ...] | None = None,
    class_names: Sequence[str] | None = None,
) -> Model:
    """Quantize a float network of torch to int8, in one call.

    The network is exported to ONNX in a temporary folder, by the exporter that needs no other
    package than torch, and quantized as :func:`pmt.quantize` does. Batch norm is folded into
    the layers, and activations become height, width, channels.

    Parameters
    ----------
    module : torch.nn.Module
        The network: one input with the batch first and channels before height and width, one
        output, the logits or features. It is run in eval mode, and afterwards each of its layers is
        in the mode in which it was.
    calibration : Dataset, ndarray or data of torch
        Some hundred typical inputs, at least 8, of the size that the network reads: a data set, an
        array (N, H, W, C), a tensor (N, C, H, W), or a ``torch.utils.data`` Dataset or DataLoader.
        Arrays and those of torch are read as by :func:`pmt.datasets.from_torch`: images are uint8,
        or floats in 0..1 before any normalization.
    name : str
        Name of the model, by default the module's class.
    limit : int
        Calibrate on at most this many of them, always the same ones; 0 takes all.
    features : bool
        Whether arrays and tensors are inputs that are not pixels, as the network reads them:
        (N, T, C) and (N, F) of an array, (N, C, T) and (N, F) of a tensor, too. A data set says it
        by its dtype. A network that flattens windows takes them as they are, also those of a
        DataLoader: ``pmt.datasets.from_torch(loader, features=True, channels_first=False)``.
    ranges, equalize, bias_correction
        As :func:`pmt.quantize`.
    input_mean, input_std : float or tuple of float, optional
        The network reads ``(pixel - mean) / std``, in units of a 0..255 pixel, one number each or
        one per channel; by default ``pixel / 255``, as from torchvision's ``ToTensor``. After its
        ``Normalize(m, s)`` they are ``255 * m`` and ``255 * s``.
    class_names : sequence of str, optional
        Names of the classes, in the order of the logits; by default those of the data, if their
        number fits.

    Returns
    -------
    Model
        The int8 network, which takes what `calibration` holds: (N, H, W, C), uint8 or float32.

    Raises
    ------
    ImportError
        If torch or onnx is missing.
    TypeError
        If `module` is no module of torch, or `calibration` holds neither images nor inputs.
    ValueError
        If the network does not run on the inputs, holds what torch cannot export or pmt does not
        support (docs/guides/importers_onnx.md lists the operators), its outputs for eight inputs,
        one at a time or in one batch, differ from those of the network that was read by more than a
        hundredth of what an output spans over them, or an option is outside its range.

    Examples
    --------
    >>> import pmt, torch
    >>> network = torch.nn.Sequential(
    ...     torch.nn.Conv2d(1, 8, 3, stride=2), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
    ...     torch.nn.Flatten(), torch.nn.Linear(8 * 13 * 13, 10),
    ... )
    >>> data = pmt.datasets.bundled("train")
    >>> pmt.from_torch(network, data, limit=64).input_shape
    (28, 28, 1)
    """
    check_method(ranges)
    checked_flag("features", features)
    checked_flag("equalize", equalize)
    checked_flag("bias_correction", bias_correction)
    limit = checked_range("limit", limit, 0, 2**31 - 1)
    torch = import_extra("torch", "pmt.from_torch needs the package torch", "torch")
    check_type("name", name, str, "text")
    module = getattr(module, "_orig_mod", module)  # of torch.compile, which cannot be exported
    _check_module(torch, module)
    data = _inputs(torch, calibration, limit, features)
    shapes, as_stored = _shapes(data), False
    if _flattens_windows(torch, module, data):
        stored = _inputs(torch, calibration, limit, features, channels_first=False)
        as_stored = stored.images.shape[1] == 1  # not (N, C, 1, W)
        if as_stored:
            data, shapes = stored, [stored.images.shape[2:]]
    kind = type(module).__name__
    given = given_options(input_mean, input_std)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{kind}.onnx")
        example = _export(torch, module, shapes, path)
        order = "NWC" if as_stored else {2: "NC", 3: "NCW", 4: "NCHW"}[example.ndim]
        with errors_of(f"module {kind}", path):
            graph = read_float_network(str(path), {**given, "order": order})
    graph = for_inputs(graph, data, given, "calibration")
    some = data[:_COMPARED]
    inputs = real_inputs(some, given)
    inputs = inputs if as_stored else np.moveaxis(inputs, -1, 1)
    inputs = np.ascontiguousarray(inputs).reshape(len(some), *example.shape[1:])
    _check_outputs(torch, module, torch.tensor(inputs).to(example), graph, some.images)
    names = names_of_logits(class_names, graph, data)
    result = quantize_graph(
        graph, data.images, ranges=ranges, equalize=equalize, bias_correction=bias_correction
    )
    source = f"{kind} of torch, quantized by pmt.from_torch"
    return named_model(result, names, name or kind, source, data)


def _check_module(torch: Any, module: object) -> None:
    if isinstance(module, torch.nn.Module):
        _check_parameters(torch, module)
        try:
            with _eval_mode(module):
                return
        except NotImplementedError as error:
            message = "module: a program of torch.export has no eval mode; give what was exported"
            raise ValueError(message) from error
    remedy = "build the network and load its weights with load_state_dict"
    if isinstance(module, str | Path):
        remedy = "pmt.quantize reads .onnx, pmt.load int8 networks"
    raise TypeError(f"module is {kind_of(module)}: must be a torch.nn.Module; {remedy}")


def _check_parameters(torch: Any, module: Any) -> None:
    """Raise a ValueError where parameters have no values, or a type that ONNX files here lack."""
    for name, values in (*module.named_parameters(), *module.named_buffers()):
        if values.is_meta:
            raise ValueError(
                f"module: {name} is on the device meta and has no values; load them with "
                "module.to_empty(device='cpu') and load_state_dict"
            )
        if values.dtype == torch.bfloat16:
            raise ValueError(
                f"module: {name} is bfloat16, which is not read; convert a copy, "
                "copy.deepcopy(module).float()"
            )


def _inputs(
    torch: Any, calibration: Any, limit: int, features: bool, channels_first: bool | None = None
) -> Dataset:
    """Return the inputs that are calibrated on, as a data set."""
    if isinstance(calibration, torch.utils.data.Dataset | torch.utils.data.DataLoader):
        return datasets.from_torch(
            calibration,
            limit=limit,
            features=features,
            channels_first=channels_first,
            name="calibration",
        )
    kinds = "an array of images (N, H, W, C), or a tensor, Dataset or DataLoader of torch"
    arrays = (torch.Tensor, np.ndarray)
    return calibration_inputs(calibration, limit, features, arrays, kinds, channels_first)


def _flattens_windows(torch: Any, module: Any, data: Dataset) -> bool:
    """Whether inputs are windows whose values the module takes in any shape, as Flatten does.

    No axis of theirs may be moved then: the module was trained on them as they are.
    """
    height, width, channels = data.images.shape[1:]
    if data.has_pixels or height != 1 or min(width, channels) == 1:
        return False
    try:
        with _eval_mode(module), torch.no_grad():
            _example(torch, module, [(width * channels,)])
    except ValueError:
        return False
    return True


def _export(torch: Any, module: Any, shapes: Sequence[Shape], path: Path) -> Any:
    """Write the module as ONNX, and return the input with which it was traced."""
    options: dict[str, Any] = {}
    # Before torch 2.5 there is no other exporter.
    if "dynamo" in inspect.signature(torch.onnx.export).parameters:
        options["dynamo"] = False
    # Its log would hold the whole graph before an error, and torch's switch for it has no effect.
    silent = mock.patch.object(torch._C, "_jit_onnx_log", create=True)
    one = _one_parameter(torch, module)
    with _exporting, _eval_mode(module), torch.no_grad(), silent, one, warnings.catch_warnings():
        # torch calls the exporter old, and names Python values that tracing makes constants.
        warnings.simplefilter("ignore")
        example = _example(torch, module, shapes)
        try:
            torch.onnx.export(module, example, path, **options)
        except RuntimeError as error:
            raise ValueError(
                f"module: torch.onnx.export refuses {type(module).__name__}: {error}; "
                "docs/guides/importers_onnx.md lists what a network may hold"
            ) from error
    return example


def _one_parameter(torch: Any, module: Any) -> Any:
    """Hide parameters of forward that have defaults, of which torch would make inputs."""
    if isinstance(module, torch.jit.ScriptModule):
        return nullcontext()
    forward = module.forward
    return mock.patch.object(module, "forward", lambda x, *rest, **more: forward(x, *rest, **more))


def _check_outputs(torch: Any, module: Any, batch: Any, graph: FloatGraph, images: Array) -> None:
    """Raise a ValueError where inputs have other outputs than the network that was read.

    Tracing makes constants of what depends on the batch or on values. Where an operator over the
    channels of a map was left out, the module is compared with itself, one input at a time.
    """
    with _eval_mode(module), torch.no_grad(), np.errstate(all="ignore"):
        found = float_logits(graph, images)
        if not np.isfinite(found).all():
            return  # quantize_graph() refuses it
        found = _with_dropped(torch, graph, found)
        alone = _outputs_alone(torch, module, batch)
        try:
            together = _output(torch, module, batch)
        except Exception:  # it reads one input at a time
            together = alone
    if graph.metadata["dropped_operators"] and together.size != found.size:
        found = alone
    rounding = max(_ROUNDING, 10 * torch.finfo(batch.dtype).eps)
    for outputs, problem in (
        (alone, "one at a time are not those of the network that was exported, with zeros"),
        (together, "in one batch are not those of one at a time, with which it was exported"),
    ):
        told = _told_difference(outputs, found, rounding)
        if told:
            raise ValueError(
                f"module: the outputs of {type(module).__name__} for {len(batch)} inputs of "
                f"calibration {problem}: they {told}; {_remedy(torch, batch)}"
            )


def _remedy(torch: Any, batch: Any) -> str:
    """Return a remedy for other outputs, which of inputs far from 0 rounding alone makes."""
    inputs = batch.cpu().numpy()
    span, eps = np.ptp(inputs, axis=0).max(), torch.finfo(batch.dtype).eps
    if eps * np.abs(inputs).max() > _TOLERANCE * span:
        return (
            f"the inputs, around {inputs.mean(dtype=np.float64):.3g}, span at most {span:.3g}, "
            "which rounding blurs; subtract their mean from them before the network reads them, "
            "in its training, too"
        )
    return (
        "let its forward treat each input by itself, by x.flatten(1) instead of x.view(1, -1), "
        "without x.shape[0] in arithmetic, means over the batch or branches on values"
    )


def _with_dropped(torch: Any, graph: FloatGraph, logits: Array) -> Array:
    """Apply the operators that were left out to logits (N, classes)."""
    found = torch.tensor(logits)
    for operator in graph.metadata["dropped_operators"]:
        kind = operator.rpartition("(")[2].rstrip(")")
        if kind == "ArgMax":
            found = found.argmax(1)
        elif kind in ("Softmax", "LogSoftmax"):
            found = getattr(torch, "softmax" if kind == "Softmax" else "log_softmax")(found, 1)
        else:
            found = getattr(torch.nn.functional, kind.lower())(found)
    array: Array = found.numpy()
    return array


def _told_difference(expected: Array, found: Array, rounding: float) -> str:
    """Return how outputs differ, feature maps with their channels last; nothing of rounding.

    An offset that all inputs share hides nothing.
    """
    if expected.size != found.size:
        return f"have shape {expected.shape}"
    if expected.dtype.kind != "f":  # classes, of which one may change by rounding
        others = int((expected.ravel() != found.ravel()).sum())
        return f"are other classes {others} times" if others > 1 else ""
    orders = (expected, np.moveaxis(expected, 1, -1)) if expected.ndim > 2 else (expected,)
    difference = min(np.abs(one.ravel() - found.ravel()).max() for one in orders)
    span = np.ptp(found.reshape(len(found), -1), axis=0).max()
    if difference <= _TOLERANCE * span + rounding * np.abs(expected).max():
        return ""
    return f"differ by up to {difference:.3g}, and an output spans at most {span:.3g}"


def _outputs_alone(torch: Any, module: Any, inputs: Any) -> Array:
    """Return the outputs of inputs that the module reads one by one, also without the batch."""
    outputs = [_output(torch, module, one[None]) for one in inputs]
    return np.concatenate([one if one.shape[:1] == (1,) else one[None] for one in outputs])


def _output(torch: Any, module: Any, inputs: Any) -> Array:
    """Return a module's only output, also out of a tuple or dict, as export finds it."""
    result = module(inputs)
    while not isinstance(result, torch.Tensor):
        held = result.values() if isinstance(result, Mapping) else result
        result = next(one for one in held if one is not None)
    array: Array = result.cpu().numpy()
    return array


@contextmanager
def _eval_mode(module: Any) -> Iterator[None]:
    """Set a module and all in it to eval mode; each gets its own mode back."""
    modes = [(part, part.training) for part in module.modules()]
    try:
        module.eval()
        yield
    finally:
        for part, mode in modes:
            part.training = mode


def _example(torch: Any, module: Any, shapes: Sequence[Shape]) -> Any:
    """Return the first input that the module runs on: a batch of one, all zeros."""
    weights = next(
        (weights for weights in module.parameters() if weights.is_floating_point()), None
    )
    kind = {} if weights is None else {"dtype": weights.dtype, "device": weights.device}
    problems, cause = [], None
    for shape in shapes:
        example = torch.zeros((1, *shape), **kind)
        try:
            module(example)
        except Exception as error:  # a module is a user's program
            problems.append(f"{tuple(example.shape)}: {type(error).__name__}: {error}")
            cause = error
        else:
            return example
    raise ValueError(
        f"module: {type(module).__name__} does not run on zeros in the shape of an input of "
        f"calibration, {'; '.join(problems)}; if it reads another size or other channels, give "
        "those (.resize(height, width) of a data set resizes images), else correct its forward"
    ) from cause


def _shapes(data: Dataset) -> list[Shape]:
    """Return the shapes in which a module may read an input, channels first, without the batch."""
    height, width, channels = data.images.shape[1:]
    shapes: list[Shape] = [(channels, height, width)]
    if not data.has_pixels and height == 1:
        shapes.append((channels, width))
        if width == 1:  # first: a Flatten takes all of them, and gives no sign what it flattens
            shapes.insert(0, (channels,))
    return shapes
