"""MCUTrain's contribution analysis: what does training this layer gain, found by training it."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pmt import _core
from pmt._util import atomic_file
from pmt._util.parsing import parse_json
from pmt._util.progress import ProgressLine
from pmt.baselines.backprop.options import BackpropOptions
from pmt.baselines.backprop.scheme import LayerUpdate, UpdateScheme, head_layer, layer_update
from pmt.baselines.sparse_update.knapsack import Option, best_choice
from pmt.baselines.sparse_update.memory_model import layer_memory, scheme_memory
from pmt.baselines.sparse_update.options import MCUTrainOptions
from pmt.baselines.sparse_update.published import convolutions
from pmt.datasets import Dataset
from pmt.datasets.checksum import checksum
from pmt.model import Layer, Model

__all__ = ["RATIOS", "Contributions", "analyse"]

RATIOS = (0.125, 0.25, 0.5, 1.0)
_FORMAT = "pmt contributions 1"


@dataclass(frozen=True)
class Contributions:
    """Held-out accuracies after short trainings, each of one update.

    Attributes
    ----------
    before : float
        With nothing but the head trained (or nothing at all where there is no linear head).
    biases : dict
        By number k, with the biases of the last k layers trained too.
    weights : dict
        By (layer's name, ratio), with that layer's weights trained beside the biases.
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
            Bytes, by MCUTrain's count (:mod:`pmt.baselines.sparse_update.memory_model`).

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
        """What a layer's weights gain beside the biases that they were trained with."""
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


def analyse(
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
    """Train every update on its own and measure what it gains.

    With the linear head always trained: the biases of the last k layers, for every k; then, for
    every layer, its weights at every ratio beside the biases from that layer on. Each starts from
    ``model`` and sees the same images in the same order, so that differences are the update's.

    Parameters
    ----------
    model : Model
        The network; it is not changed.
    data, valid : Dataset
        Images to train on, and held-out images to measure accuracy on.
    options : BackpropOptions, optional
        How long and how to train; ``layers`` has no meaning.
    ratios : sequence of float
        Shares of a layer's input channels, 0 to 1.
    stride : int
        Biases are tried for every ``stride``-th k, and for all layers.
    cache : str or pathlib.Path, optional
        JSON file that every measurement is written to. An analysis that was interrupted goes on
        from there; one of other data, weights or options is refused.
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
    if stride < 1:
        raise ValueError(f"stride={stride!r} must be 1 or more")
    layers = convolutions(model)
    chosen = options if options is not None else BackpropOptions()
    plan = _plan(model, layers, ratios, stride)
    table = _Table(cache, _identity(model, data, valid, chosen))
    line = ProgressLine(len(plan), done=len(table.accuracies), unit="training")
    try:
        for number, (name, scheme) in enumerate(plan.items()):
            line.update(number, name)
            if name not in table.accuracies:
                table.add(name, _accuracy(model, scheme, data, valid, chosen, threads))
    finally:
        line.clear()
    return _contributions(table.accuracies, plan)


class _Table:
    """Accuracies by what was trained, in a file that grows with each."""

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
            raise ValueError(f"{self.path}: no contribution analysis ({error!r})") from None
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
    """Name every training and say what it trains, in order."""
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
        return model.evaluate(valid, threads=threads).accuracy
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
