"""MCUTrain's choice: gains of layers, found by training them, within a memory budget."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pmt import _core
from pmt._util import atomic_file
from pmt._util.checks import checked_range
from pmt._util.parsing import parse_json
from pmt._util.progress import ProgressLine
from pmt.baselines.backprop.cost import BackwardGraph
from pmt.baselines.backprop.options import BackpropOptions
from pmt.baselines.backprop.scheme import (
    LayerUpdate,
    UpdateScheme,
    head_layer,
    input_channels,
    layer_update,
)
from pmt.baselines.sparse_update.options import MCUTrainOptions, convolutions
from pmt.datasets import Dataset
from pmt.datasets.dataset import checksum
from pmt.errors import FileError
from pmt.model import Layer, Model

RATIOS = (0.125, 0.25, 0.5, 1.0)
_FORMAT = "pmt contributions 1"
# Above this number memory is counted in coarser units, rounded up, so that a budget always holds.
_MOST_UNITS = 2**18


@dataclass(frozen=True)
class Contributions:
    """Held-out accuracies after short trainings, each of one update.

    Attributes
    ----------
    before : float
        Accuracy with only the head trained, or nothing if there is no linear head.
    biases : dict
        Accuracies by number k, with the biases of the last k layers trained too.
    weights : dict
        Accuracies by (layer's name, ratio), with that layer's weights trained in addition to the
        biases.
    """

    before: float
    biases: dict[int, float]
    weights: dict[tuple[str, float], float]

    def scheme(self, model: Model, memory: int) -> UpdateScheme:
        """Return the scheme whose gains add up to the most within a budget.

        Parameters
        ----------
        model : Model
            The network of the analysis, or one of the same layers.
        memory : int
            Bytes, by MCUTrain's count (:mod:`pmt.baselines.sparse_update.contribution`).

        Raises
        ------
        ValueError
            If the budget is too small for anything, or the analysis is of other layers.
        """
        layers = convolutions(model)
        known = {layer.name for layer in layers}
        foreign = [name for name, _ in self.weights if name not in known]
        if foreign or max(self.biases, default=0) > len(layers):
            raise ValueError(f"the analysis is of another network; this one has no {foreign}")
        gains = [0.0] + [
            self.biases.get(k, math.nan) - self.before for k in range(1, len(layers) + 1)
        ]
        memories = [_bias_memory(model, layers, k) for k in range(len(layers) + 1)]
        options = [self._options(model, layers, i) for i in range(len(layers))]
        best = best_choice(gains, memories, options, memory)
        first = len(layers) - best.biases
        updates = [
            layer_update(model, layer, best.ratios[i], bias=True)
            for i, layer in enumerate(layers)
            if i >= first
        ]
        return _with_head(model, updates)

    def _options(self, model: Model, layers: Sequence[Layer], i: int) -> list[Option]:
        """Return the gains of a layer's weights beside the biases that they were trained with."""
        found = []
        for (name, ratio), accuracy in self.weights.items():
            if name != layers[i].name:
                continue
            beside = min((k for k in self.biases if k >= len(layers) - i), default=None)
            if beside is None:
                continue
            update = layer_update(model, layers[i], ratio, bias=False)
            memory = layer_memory(model, update)
            gain = accuracy - self.biases[beside]
            found.append(Option(ratio, gain, memory.weights + memory.inputs))
        return found


def analyze(
    model: Model,
    data: Dataset,
    valid: Dataset,
    *,
    options: BackpropOptions | None = None,
    ratios: Sequence[float] = RATIOS,
    stride: int = 1,
    cache: str | Path | None = None,
    threads: int = 0,
) -> Contributions:
    """Train each update separately and measure its gain.

    With the linear head always trained: the biases of the last k layers, for every k; then, for
    every layer, its weights at every ratio in addition to the biases from that layer on. Each
    starts from ``model`` and sees the same images in the same order, so that differences are the
    update's.

    Parameters
    ----------
    model : Model
        The network; it is not changed.
    data, valid : Dataset
        Images to train on, and held-out images to measure accuracy on.
    options : BackpropOptions, optional
        Options of each training; ``layers`` has no meaning.
    ratios : sequence of float
        Shares of a layer's input channels, 0 to 1.
    stride : int
        Biases are tried for every ``stride``-th k, and for all layers.
    cache : str or pathlib.Path, optional
        JSON file that every measurement is written to. An interrupted analysis continues from
        there; one of other data, weights or options is refused.
    threads : int
        Torch's threads.

    Returns
    -------
    Contributions
        Accuracies.

    Raises
    ------
    ImportError
        If torch is missing.
    ValueError
        If an argument is out of range, or the cache is of another analysis.
    """
    stride = checked_range("stride", stride, 1)
    layers = convolutions(model)
    chosen = options if options is not None else BackpropOptions()
    plan = _plan(model, layers, ratios, stride)
    table = _Table(cache, _identity(model, data, valid, chosen))
    with ProgressLine(len(plan), done=len(table.accuracies), unit="training") as line:
        for number, (name, scheme) in enumerate(plan.items()):
            line.update(number, name)
            if name not in table.accuracies:
                table.add(name, _accuracy(model, scheme, data, valid, chosen, threads))
    return _contributions(table.accuracies, plan)


class _Table:
    """Accuracies by the trained parts, in a file that grows with each."""

    def __init__(self, path: str | Path | None, identity: dict[str, Any]) -> None:
        self.path = Path(path) if path is not None else None
        self.identity = identity
        self.accuracies: dict[str, float] = {}
        if self.path is None or not self.path.exists():
            return
        there = parse_json(self.path.read_bytes(), self.path, "remove the file, or name another")
        try:
            same = {key: there[key] for key in identity} == identity
            self.accuracies = {str(k): float(v) for k, v in there["accuracies"].items()}
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            problem = f"no contribution analysis ({error!r})"
            raise FileError(str(self.path), [problem]) from None
        if not same:
            raise ValueError(
                f"cache={str(self.path)!r} holds an analysis of other weights, data or options; "
                "choose another file"
            )

    def add(self, name: str, accuracy: float) -> None:
        self.accuracies[name] = accuracy
        if self.path is not None:
            figures = {**self.identity, "accuracies": self.accuracies}
            atomic_file.write_text(self.path, json.dumps(figures, indent=2) + "\n")


def _identity(
    model: Model, data: Dataset, valid: Dataset, options: BackpropOptions
) -> dict[str, Any]:
    return {
        "format": _FORMAT,
        "model": _core.crc32(model.image()),
        "data": checksum(data),
        "valid": checksum(valid),
        "options": dataclasses.asdict(options),
    }


def _plan(
    model: Model, layers: Sequence[Layer], ratios: Sequence[float], stride: int
) -> dict[str, UpdateScheme | None]:
    """Return the scheme of every training by its name, in order."""
    count = len(layers)
    plan: dict[str, UpdateScheme | None] = {"before": None}
    if head_layer(model) is not None:
        plan["before"] = _with_head(model, [])
    tried = sorted({*range(stride, count + 1, stride), count})
    for k in tried:
        plan[f"biases {k}"] = _with_head(model, _biases(layers, k))
    for i, layer in enumerate(layers):
        beside = _biases(layers, min(k for k in tried if k >= count - i))
        for ratio in ratios:
            update = layer_update(model, layer, ratio, bias=True)
            if update.channels > 0:
                updates = [update if other.op == layer.index else other for other in beside]
                plan[f"weights {layer.name} {ratio:g}"] = _with_head(model, updates)
    return plan


def _accuracy(
    model: Model,
    scheme: UpdateScheme | None,
    data: Dataset,
    valid: Dataset,
    options: BackpropOptions,
    threads: int,
) -> float:
    from pmt.baselines.sparse_update.trainer import MCUTrainTrainer

    if scheme is None:
        return model.score_images(valid, threads=threads).evaluation.accuracy
    fields = {**dataclasses.asdict(options), "layers": "all", "scheme": scheme.text(model)}
    trainer = MCUTrainTrainer(MCUTrainOptions(**fields), threads=threads)
    result = trainer.fit(model.copy(), data, valid=valid, progress=False)
    return float(result.epochs[-1]["valid_accuracy"])


def _contributions(accuracies: dict[str, float], plan: Iterable[str]) -> Contributions:
    biases, weights = {}, {}
    for name in plan:
        kind, *rest = name.split(" ")
        if kind == "biases":
            biases[int(rest[0])] = accuracies[name]
        elif kind == "weights":
            weights[" ".join(rest[:-1]), float(rest[-1])] = accuracies[name]
    return Contributions(accuracies["before"], biases, weights)


def _biases(layers: Sequence[Layer], k: int) -> list[LayerUpdate]:
    return [LayerUpdate(layer.index, 0, True) for layer in layers[len(layers) - k :]]


def _with_head(model: Model, updates: list[LayerUpdate]) -> UpdateScheme:
    head = head_layer(model)
    linear = UpdateScheme.whole([head], model).layers if head is not None else ()
    return UpdateScheme((*updates, *linear))


def _bias_memory(model: Model, layers: Sequence[Layer], k: int) -> int:
    updates = _biases(layers, k)
    if not updates and head_layer(model) is None:
        return 0
    return scheme_memory(model, _with_head(model, updates)).total


@dataclass(frozen=True)
class Option:
    """Weights of one layer at one ratio: their gain, and their ``memory`` in bytes."""

    ratio: float
    gain: float
    memory: int


@dataclass(frozen=True)
class Choice:
    """The best: biases of the last ``biases`` layers, and a ratio for each layer (0: frozen)."""

    biases: int
    ratios: tuple[float, ...]
    gain: float
    memory: int


def best_choice(
    bias_gains: Sequence[float],
    bias_memories: Sequence[int],
    options: Sequence[Sequence[Option]],
    budget: int,
) -> Choice:
    """Choose how many last layers train their biases, and which weights are trained as well.

    The objective of MCUTrain's contribution analysis: gains of single updates are taken to add up,
    and weights are trained only where biases are. The publication searches by evolution; with sums
    on both sides it is a knapsack with one option for each layer, which dynamic programming over
    the bytes solves exactly. Layers are taken from the last to the first, so one table serves
    every number of biases. Among equal gains the choice of fewest biases is taken.

    Gains and memories of biases are those of the last k layers, for k = 0 .. L, ``nan`` where a k
    was not measured; options are by layer, first layer first.
    """
    count = len(options)
    if budget < min(bias_memories):
        raise ValueError(f"budget={budget!r} bytes is below the least, {min(bias_memories)}")
    unit = max(1, -(-budget // _MOST_UNITS))
    best = np.zeros(budget // unit + 1)
    taken: list[np.ndarray] = []
    result = Choice(-1, (), -np.inf, 0)
    for k in range(count + 1):
        if k > 0:
            best, picks = _with_layer(best, options[count - k], unit)
            taken.append(picks)
        left = (budget - bias_memories[k]) // unit
        if left < 0 or np.isnan(bias_gains[k]):
            continue
        gain = float(bias_gains[k] + best[left])
        if gain > result.gain:
            ratios, memory = _trace(taken, options, left, unit)
            result = Choice(k, ratios, gain, memory + bias_memories[k])
    return result


def _with_layer(
    best: np.ndarray, options: Sequence[Option], unit: int
) -> tuple[np.ndarray, np.ndarray]:
    """Offer one more layer: the best gain by memory, and which option it took (0: none)."""
    better = best.copy()
    picks = np.zeros(len(best), np.uint8)
    for number, option in enumerate(options, start=1):
        size = -(-option.memory // unit)
        if size >= len(best):
            continue
        offered = best[: len(best) - size] + option.gain
        wins = offered > better[size:]
        better[size:][wins] = offered[wins]
        picks[size:][wins] = number
    return better, picks


def _trace(
    taken: Sequence[np.ndarray], options: Sequence[Sequence[Option]], left: int, unit: int
) -> tuple[tuple[float, ...], int]:
    """Follow the picks back: the layer that was offered last decides first."""
    ratios, memory = [0.0] * len(options), 0
    for k in range(len(taken), 0, -1):
        layer = len(options) - k
        number = int(taken[k - 1][left])
        if number:
            option = options[layer][number - 1]
            ratios[layer] = option.ratio
            memory += option.memory
            left -= -(-option.memory // unit)
    return tuple(ratios), memory


@dataclass(frozen=True)
class UpdateMemory:
    """Bytes: trained ``weights`` (int8) and ``biases`` (int32), kept ``inputs``, ``masks``."""

    weights: int = 0
    biases: int = 0
    inputs: int = 0
    masks: int = 0

    @property
    def total(self) -> int:
        """Sum of the parts."""
        return sum(vars(self).values())

    def __add__(self, other: UpdateMemory) -> UpdateMemory:
        sums = {name: size + getattr(other, name) for name, size in vars(self).items()}
        return UpdateMemory(**sums)


def layer_memory(model: Model, update: LayerUpdate) -> UpdateMemory:
    """Count one layer.

    A layer whose biases are trained keeps a bit for each output (was it at a clamp?); one whose
    weights are trained keeps the trained channels of its input. The forward pass and the gradients
    of activations are not counted.
    """
    op = model.core.ops()[update.op]
    source, out = (model.core.tensors()[i] for i in (op["inputs"][0], op["output"]))
    channels = input_channels(model, update.op)
    return UpdateMemory(
        weights=int(op["weights"]) * update.channels // channels,
        biases=4 * int(out["channels"]) if update.bias else 0,
        inputs=_elements(source) * update.channels // channels,
        masks=_mask_bytes(out) if update.bias else 0,
    )


def scheme_memory(model: Model, scheme: UpdateScheme) -> UpdateMemory:
    """Count a scheme; of the linear head only its input, as in the publication.

    Layers that train nothing, but that the gradient passes on its way to one that does, keep their
    masks too. The published schemes have none.
    """
    head, trained = head_layer(model), scheme.by_op()
    total = UpdateMemory()
    reaches = BackwardGraph.of(model, scheme).reaches
    ops, tensors = model.core.ops(), model.core.tensors()
    for layer in model.layers:
        update = trained.get(layer.index)
        memory = layer_memory(model, update) if update else UpdateMemory()
        if layer.index == head:
            memory = UpdateMemory(inputs=memory.inputs)
        elif ops[layer.index]["output"] in reaches:
            memory = replace(memory, masks=_mask_bytes(tensors[ops[layer.index]["output"]]))
        total += memory
    return total


def _mask_bytes(tensor: Mapping[str, Any]) -> int:
    return (_elements(tensor) + 7) // 8


def _elements(tensor: Mapping[str, Any]) -> int:
    return int(tensor["height"] * tensor["width"] * tensor["channels"])
