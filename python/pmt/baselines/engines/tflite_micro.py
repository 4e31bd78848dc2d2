"""TensorFlow Lite for Microcontrollers as an engine, and the size of its arena.

The interpreter reads weights and biases where they stand in the flatbuffer, at every inference, as
it does from a microcontroller's memory. So a perturbation is a few bytes written there.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from pmt import _core
from pmt._util.extras import import_extra
from pmt.formats.tflite.file import FileModel, read_file
from pmt.model import Model
from pmt.model.loading import load

__all__ = ["MicroArena", "TFLiteMicroEngine", "interpreter_package", "micro_arena"]

_LAYER_OPERATORS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
# So many times the file and all activations are beyond any network's needs.
_ROOM = 10
_STDERR = 2


class TFLiteMicroEngine:
    """Runs a full-integer ``.tflite`` by the interpreter of TensorFlow Lite for Microcontrollers.

    Losses are of the int8 logits, which are the file's output or what its last operator, a softmax,
    takes in.

    Parameters
    ----------
    path : str or pathlib.Path
        The file, with int8 in and out, and with its layers' weights and biases as :func:`pmt.load`
        finds them.
    arena_bytes : int, optional
        Memory of the interpreter; by default ten times the file.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ImportError
        If the package tflite_micro or tflite is missing.
    ValueError
        If the file cannot be imported or run, its ends are not int8, or a layer's weights or biases
        are not in it.
    """

    def __init__(self, path: str | Path, *, arena_bytes: int | None = None) -> None:
        runtime = interpreter_package()
        file = Path(path)
        self.model: Model = load(file)
        self.int8_logits = True
        self._content, self._bytes = _writable(file.read_bytes())
        places = _Places(file, self._content)
        places.move_output(self._bytes)
        self._layers = {
            layer.index: places.of(
                layer.name,
                self.model.core.weights(layer.index),
                self.model.core.bias(layer.index),
                self._bytes,
            )
            for layer in self.model.layers
        }
        try:
            self._interpreter: Any = runtime.Interpreter.from_bytes(
                self._content, arena_size=arena_bytes
            )
        except RuntimeError as error:
            raise ValueError(
                f"path={str(file)!r}: TensorFlow Lite Micro cannot run it with arena_bytes="
                f"{arena_bytes} ({error}); it says why on standard error"
            ) from error
        self._check_ends(file)

    def parameters(self, layer: int) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int32]]:
        """Return copies of a layer's weights and biases, see :class:`Engine`."""
        stored = self._stored(layer)
        return stored.weights.copy(), stored.bias.copy()

    def set_parameters(
        self, layer: int, weights: npt.NDArray[np.int8], bias: npt.NDArray[np.int32]
    ) -> None:
        """Replace a layer's weights and biases, see :class:`Engine`."""
        stored = self._stored(layer)
        for name, old, new in (("weights", stored.weights, weights), ("bias", stored.bias, bias)):
            if new.shape != old.shape or new.dtype != old.dtype:
                raise ValueError(
                    f"{name} of layer {layer} must be {old.dtype} {old.shape}; got {new.dtype} "
                    f"{new.shape}"
                )
        stored.weights[...] = weights
        stored.bias[...] = bias

    def logits(self, images: npt.NDArray[np.int8]) -> npt.NDArray[np.float32]:
        """Run the network.

        Parameters
        ----------
        images : ndarray of int8, shape (n, height, width, channels)
            The network's input.

        Returns
        -------
        ndarray of float32, shape (n, classes)
            The int8 logits, less their zero point, times their scale.

        Raises
        ------
        ValueError
            If the images are not int8 or of another size.
        """
        if images.dtype != np.int8 or images.shape[1:] != self.model.input_shape:
            raise ValueError(
                f"images must be int8 (N, {', '.join(map(str, self.model.input_shape))}); got "
                f"{images.dtype} {images.shape}"
            )
        logits = np.empty((len(images), self.model.classes), np.int32)
        for image, row in zip(images, logits, strict=True):
            self._interpreter.set_input(np.ascontiguousarray(image[None]), 0)
            self._interpreter.invoke()
            row[:] = self._interpreter.get_output(0).reshape(-1)
        found: npt.NDArray[np.float32] = (logits - self._zero_point).astype(np.float32)
        return found * self._scale

    def losses(
        self, images: npt.NDArray[np.int8], labels: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int32], int]:
        """Run the network, see :class:`Engine`."""
        return _core.cross_entropy(self.logits(images), labels)

    def _stored(self, layer: int) -> _Stored:
        if layer not in self._layers:
            known = ", ".join(map(str, self._layers))
            raise ValueError(f"layer={layer!r} must be a layer's op index, one of {known}")
        return self._layers[layer]

    def to_model(self) -> Model:
        """Return a model of the core with the engine's weights."""
        model = self.model.copy()
        for layer in self._layers:
            model.core.set_parameters(layer, *self.parameters(layer))
        return model

    def _check_ends(self, file: Path) -> None:
        tensors = self.model.core.tensors()
        ends = (
            (self._interpreter.get_input_details(0), tensors[self.model.core.input_tensor]),
            (self._interpreter.get_output_details(0), tensors[self.model.core.output_tensor]),
        )
        for found, tensor in ends:
            size = tensor["height"] * tensor["width"] * tensor["channels"]
            own = found["quantization_parameters"]
            scale, zero_point = np.float32(tensor["scale"]), tensor["zero_point"]
            same = list(own["scales"]) == [scale] and list(own["zero_points"]) == [zero_point]
            if found["dtype"] != np.int8 or np.prod(found["shape"]) != size or not same:
                raise ValueError(
                    f"path={str(file)!r}: input and output must be int8, of one image and as "
                    f"pmt.load finds them; {tensor['name']!r} is not: convert it with int8 ends, "
                    "or write it anew with Model.save"
                )
        self._scale, self._zero_point = scale, zero_point


@dataclass(frozen=True)
class _Stored:
    """A layer's parameters where they stand in the file: what is written to them takes effect."""

    weights: npt.NDArray[np.int8]
    bias: npt.NDArray[np.int32]


class _Places:
    """Finds the layers of a model in the file that it was imported from."""

    def __init__(self, file: Path, content: bytes) -> None:
        import tflite

        self._path = file
        self._file: FileModel = read_file(file)
        self._flatbuffer: Any = tflite.Model.GetRootAs(content, 0)
        self._content = np.frombuffer(content, np.uint8)
        self._unmatched = [op for op in self._file.ops if op.kind in _LAYER_OPERATORS]
        self._owners: dict[int, str] = {}  # of buffers

    def of(
        self,
        name: str,
        weights: npt.NDArray[np.int8],
        bias: npt.NDArray[np.int32],
        content: npt.NDArray[np.uint8],
    ) -> _Stored:
        """Return the next layer's parameters; layers come in the order of the file."""
        for position, operator in enumerate(self._unmatched):
            if len(operator.inputs) < 3 or not self._holds(operator.inputs[1], weights):
                continue
            if not self._holds(operator.inputs[2], bias):
                break
            del self._unmatched[: position + 1]
            self._own(name, operator.inputs[1:3])
            return _Stored(
                self._view(operator.inputs[1], content, np.dtype("<i1")).reshape(weights.shape),
                self._view(operator.inputs[2], content, np.dtype("<i4")),
            )
        raise ValueError(
            f"path={str(self._path)!r}: weights and biases of layer {name!r} do not stand in the "
            "file as pmt.load finds them; write it anew with Model.save"
        )

    def move_output(self, content: npt.NDArray[np.uint8]) -> None:
        """Make the logits the output, where a softmax follows them."""
        softmax = self._file.ops[-1]
        if softmax.kind != "SOFTMAX" or self._file.outputs != softmax.outputs:
            return
        outputs = self._flatbuffer.Subgraphs(0).OutputsAsNumpy()
        self._at(outputs, content).view("<i4")[0] = softmax.inputs[0]

    def _holds(self, tensor: int, values: npt.NDArray[Any]) -> bool:
        stored = self._file.tensors[tensor].data if tensor >= 0 else None
        little = values.astype(values.dtype.newbyteorder("<"), copy=False)
        return stored is not None and stored.tobytes() == little.tobytes()

    def _view(
        self, tensor: int, content: npt.NDArray[np.uint8], item: np.dtype[Any]
    ) -> npt.NDArray[Any]:
        stored = self._flatbuffer.Buffers(self._buffer(tensor)).DataAsNumpy()
        return self._at(stored, content).view(item)

    def _buffer(self, tensor: int) -> int:
        return int(self._flatbuffer.Subgraphs(0).Tensors(tensor).Buffer())

    def _own(self, name: str, tensors: Sequence[int]) -> None:
        for buffer in map(self._buffer, tensors):
            other = self._owners.setdefault(buffer, name)
            if other != name:
                raise ValueError(
                    f"path={str(self._path)!r}: layers {other!r} and {name!r} share weights or "
                    "biases in the file, and would be trained as one; write it anew with Model.save"
                )

    def _at(self, part: npt.NDArray[Any], content: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        start = part.ctypes.data - self._content.ctypes.data
        return content[start : start + part.nbytes]


def interpreter_package() -> Any:
    """Return the module with the interpreter; raise ImportError with a hint where it is missing."""
    need = "TensorFlow Lite Micro needs the package tflite_micro"
    return import_extra("tflite_micro", need, "tflm").runtime


def _writable(content: bytes) -> tuple[bytes, npt.NDArray[np.uint8]]:
    """Return bytes of the same content, and an array through which they can be written.

    The interpreter takes only ``bytes``, and keeps a pointer to them. CPython lets an extension
    write to those that it has made with PyBytes_FromStringAndSize(NULL, n) and shown to nobody that
    needs them constant.
    """
    make = ctypes.pythonapi.PyBytes_FromStringAndSize
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_ssize_t]
    address = ctypes.pythonapi.PyBytes_AsString
    address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object]
    made: bytes = make(None, len(content))
    memory = (ctypes.c_uint8 * len(content)).from_address(address(made))
    view = np.ctypeslib.as_array(memory)
    view[:] = np.frombuffer(content, np.uint8)
    return made, view


@dataclass(frozen=True)
class MicroArena:
    """Bytes of the interpreter's arena.

    Attributes
    ----------
    activations : int
        Its head: activations and kernels' scratch, planned with their lifetimes.
    bookkeeping : int
        Its tail: tensors, operators, and what kernels prepare; with pointers of this machine.
    """

    activations: int
    bookkeeping: int

    @property
    def total(self) -> int:
        """All of it; with 16 bytes less the interpreter refuses to run."""
        return self.activations + self.bookkeeping


def micro_arena(content: bytes, activations: int) -> MicroArena:
    """Run a ``.tflite`` with int8 ends once, and return the interpreter's own record of its arena.

    ``activations`` are the bytes of all activations together, to make an arena that suffices. A
    ValueError says that the interpreter cannot run the file.
    """
    runtime = interpreter_package()
    room = _ROOM * 16 * ((len(content) + activations) // 16 + 1)  # the tail is aligned from the end
    with tempfile.TemporaryFile() as log:
        failure = None
        with _standard_error(log):
            try:
                interpreter = runtime.Interpreter.from_bytes(content, arena_size=room)
                shape = interpreter.get_input_details(0)["shape"]
                interpreter.set_input(np.zeros(shape, np.int8), 0)
                interpreter.invoke()
                interpreter.print_allocations()
            except RuntimeError as error:
                failure = error
        log.seek(0)
        printed = log.read().decode(errors="replace")
    if failure is not None:
        reason = " ".join([str(failure), *printed.split("\n")[:1]])
        raise ValueError(f"TensorFlow Lite Micro cannot run the network: {reason}") from failure
    found = dict(re.findall(r"Arena allocation (head|tail) (\d+) bytes", printed))
    if len(found) < 2:
        raise ValueError("this version of tflite_micro does not print what its arena holds")
    return MicroArena(int(found["head"]), int(found["tail"]))


@contextmanager
def _standard_error(file: IO[bytes]) -> Iterator[None]:
    """Lead the process's standard error, which the interpreter prints to, into a file."""
    sys.stderr.flush()
    kept = os.dup(_STDERR)
    try:
        os.dup2(file.fileno(), _STDERR)
        yield
    finally:
        os.dup2(kept, _STDERR)
        os.close(kept)
