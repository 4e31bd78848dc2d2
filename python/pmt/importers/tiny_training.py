"""Reader of the int8 networks of the tiny-training project (``.pkl``, a torch zip archive).

The archive holds dicts: ``first_conv``, ``blocks`` (each ``pointwise1``, ``depthwise``,
``pointwise2``, ``residual``), ``feature_mix``, ``classifier``. Weights are stored as
(out, in, kernel, kernel) and become (out, kernel, kernel, in) here. Scales of activations are
double precision in the file; weight scales move by up to two units in the last place where that
keeps the requantisation exact in float32. Dead channels (a weight scale near 4e-9 with a bias at
the end of int32) pass through.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pmt.graph import Graph, Op, OpKind, Tensor
from pmt.importers.archive_node import Node
from pmt.importers.layer_blocks import consecutive_blocks
from pmt.importers.requantisation import matching_weight_scales
from pmt.importers.safe_pickle import loads
from pmt.importers.torch_archive import read_pickle_bytes

# The paper trains first_conv and the 13 expanding pointwise convolutions of its MCUNet.
_PAPER_LAYERS = 14
_MAX_BLOCKS = 200


def read(
    path: str | Path, *, classes: int | None = None, resolution: int = 128, **unknown: Any
) -> Graph:
    """Read a tiny-training archive.

    Parameters
    ----------
    path : str or pathlib.Path
        The ``.pkl`` file.
    classes : int, optional
        ``None`` keeps the head of the file (1,000 classes). A number gives a new head with that
        many classes: int8 weights 0, bias 0, every weight scale the median of the old head's
        scales. All its logits are 0 until it is trained; with those scales the int8 range covers
        the weights that the old head had.
    resolution : int
        Height and width of the input image in pixels, 32 to 512. The file says 128.

    Returns
    -------
    Graph
        Layers ``first_conv``, ``b0.depthwise``, ``b0.pointwise2``, ``b1.pointwise1``, ...,
        ``classifier``, and the ops ``b2.add``, ..., ``avgpool``. The int8 input is pixel - 128.
        Blocks: ``B1`` to ``B4`` (``first_conv`` and all ``pointwise1`` in four groups),
        ``paper14`` (those layers, where there are 14 as in the paper's MCUNet), ``head`` and
        ``all`` (every layer, head included).

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is damaged, holds anything but dicts and arrays of numbers, or has another
        structure; if ``classes`` or ``resolution`` is out of range.
    TypeError
        If an option is unknown.
    """
    if unknown:
        raise TypeError(
            f"options {sorted(unknown)} are unknown for a tiny-training .pkl; "
            "it takes classes and resolution"
        )
    _check_integer("classes", 2 if classes is None else classes, 2, 65536)
    _check_integer("resolution", resolution, 32, 512)
    path = Path(path)
    data = read_pickle_bytes(path)
    archive = Node(loads(data, source=path.name), path.name)
    try:
        return _NetworkBuilder(resolution).build(archive, classes, path.name)
    except ValueError as error:
        if path.name in str(error):
            raise
        raise ValueError(f"{path.name}: {error}") from None


def _check_integer(name: str, value: Any, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name}={value!r}: must be an integer")
    if not low <= value <= high:
        raise ValueError(f"{name}={value}: must be in [{low}, {high}]")


@dataclass
class _NetworkBuilder:
    resolution: int
    tensors: list[Tensor] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)

    def build(self, archive: Node, classes: int | None, source: str) -> Graph:
        first = archive.child("first_conv")
        scale, zero_point = first.child("params").quantisation("x")
        size, channels = self.resolution, first.integer("in_channel", 1, 4)
        self.tensors.append(Tensor("input", size, size, channels, scale, zero_point))
        self._convolution("first_conv", first, 0)
        current = 1
        for number, block in enumerate(archive.children("blocks", _MAX_BLOCKS)):
            current = self._block(f"b{number}", block, current)
        if not archive.is_none("feature_mix"):
            current = self._convolution("feature_mix", archive.child("feature_mix"), current)
        head = archive.child("classifier")
        current = self._convolution("classifier", head, self._average_pool(head, current))
        if classes is not None:
            self._replace_head(classes)
        return Graph(
            tensors=self.tensors,
            ops=self.ops,
            input=0,
            output=current,
            # Makes (pixel - mean) / std / scale + zero_point exactly pixel - 128.
            input_mean=(128.0 + zero_point,) * channels,
            input_std=(1.0 / scale,) * channels,
            blocks=self._blocks(),
            metadata={"source": f"tiny-training archive {source}"},
        )

    def _block(self, name: str, block: Node, source: int) -> int:
        block.require_none("se", "squeeze-and-excitation is not supported")
        current = source
        for part in ("pointwise1", "depthwise", "pointwise2"):
            if not block.is_none(part):
                current = self._convolution(f"{name}.{part}", block.child(part), current)
        if block.is_none("residual"):
            return current
        residual = block.child("residual").child("params")
        self._check_link(f"{name}.add", residual.quantisation("x"), source)
        height, width, channels = self._shape(current)
        target = self._tensor(f"{name}.add", height, width, channels, residual.quantisation("y"))
        self.ops.append(Op("add", f"{name}.add", (source, current), target))
        return target

    def _convolution(self, name: str, node: Node, source: int) -> int:
        node.require_none("act", "activations are part of the int8 range in this format")
        params = node.child("params")
        height, width, in_channels = self._shape(source)
        out_channels = node.integer("out_channel", 1, 65536)
        kernel = node.kernel("kernel_size", 15)
        stride = node.integer("stride", 1, 8)
        groups = node.integer("groups", 1, 65536)
        weights = params.array("weight", np.int8, (out_channels, in_channels // groups, *kernel))
        kind: OpKind = "conv2d"
        if groups == 1:
            weights = weights.transpose(0, 2, 3, 1)
        elif groups == in_channels == out_channels:
            kind, weights = "depthwise_conv2d", weights[:, 0].transpose(1, 2, 0)
        else:
            node.fail("groups", f"{groups} with {in_channels} channels; use 1 or all of them")
        self._check_link(name, params.quantisation("x"), source)
        rows, columns = -(-height // stride), -(-width // stride)
        target = self._tensor(name, rows, columns, out_channels, params.quantisation("y"))
        scales = params.array("w_scales", np.float32, (out_channels,))
        top, bottom = _padding(height, rows, kernel[0], stride)
        left, right = _padding(width, columns, kernel[1], stride)
        self.ops.append(
            Op(
                kind,
                name,
                (source,),
                target,
                kernel=kernel,
                stride=(stride, stride),
                padding=(top, left, bottom, right),
                weights=np.ascontiguousarray(weights),
                bias=params.array("bias", np.int32, (out_channels,)),
                weight_scales=matching_weight_scales(
                    scales, params.quantisation("x")[0], params.quantisation("y")[0]
                ),
            )
        )
        return target

    def _average_pool(self, head: Node, source: int) -> int:
        tensor = self.tensors[source]
        quantisation = head.child("params").quantisation("x")
        target = self._tensor("avgpool", 1, 1, tensor.channels, quantisation)
        self._check_link("avgpool", quantisation, source)
        self.ops.append(Op("mean", "avgpool", (source,), target))
        return target

    def _replace_head(self, classes: int) -> None:
        head, old = self.ops[-1], self.tensors[-1]
        assert head.weights is not None
        assert head.weight_scales is not None
        scale = np.float32(np.median(head.weight_scales))
        head.weights = np.zeros((classes, *head.weights.shape[1:]), np.int8)
        head.bias = np.zeros(classes, np.int32)
        head.weight_scales = np.full(classes, scale, np.float32)
        self.tensors[-1] = Tensor(old.name, 1, 1, classes, old.scale, old.zero_point)

    def _blocks(self) -> dict[str, list[int]]:
        layers = [i for i, op in enumerate(self.ops) if op.weights is not None]
        expanding = [i for i in layers if self.ops[i].name.endswith(("first_conv", ".pointwise1"))]
        blocks = consecutive_blocks(expanding)
        if len(expanding) == _PAPER_LAYERS:
            blocks["paper14"] = expanding
        blocks["head"] = layers[-1:]
        blocks["all"] = layers
        return blocks

    def _shape(self, index: int) -> tuple[int, int, int]:
        tensor = self.tensors[index]
        return tensor.height, tensor.width, tensor.channels

    def _tensor(
        self, name: str, height: int, width: int, channels: int, quantisation: tuple[float, int]
    ) -> int:
        self.tensors.append(Tensor(name, height, width, channels, *quantisation))
        return len(self.tensors) - 1

    def _check_link(self, name: str, quantisation: tuple[float, int], source: int) -> None:
        tensor = self.tensors[source]
        if not _equal_quantisation(quantisation, (tensor.scale, tensor.zero_point)):
            raise ValueError(
                f"{name}: expects its input with scale and zero point {quantisation}, but "
                f"{tensor.name} gives {(tensor.scale, tensor.zero_point)}; the file contradicts "
                "itself"
            )


def _equal_quantisation(a: tuple[float, int], b: tuple[float, int]) -> bool:
    return bool(np.float32(a[0]) == np.float32(b[0])) and a[1] == b[1]


def _padding(size: int, output: int, kernel: int, stride: int) -> tuple[int, int]:
    """Return the rows before and after: (k-1)/2, then what the output size needs."""
    before = (kernel - 1) // 2
    return before, max(0, (output - 1) * stride + kernel - size - before)
