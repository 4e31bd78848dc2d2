"""Tables of ``pmt profile``."""

from __future__ import annotations

from collections.abc import Sequence

from pmt import _core
from pmt.baselines.backprop.backward_memory import inference_moments
from pmt.cli.tables import table
from pmt.model import Model
from pmt.research.profile.profile import Profile
from pmt.train.costs.memory import PARTS
from pmt.train.costs.peak import PlanMoment, peak_moment

__all__ = ["memory_table", "plan_table", "summary", "work_table"]

_WORK = {
    "forward": "forward",
    "queries": "queries",
    "reforwards": "again",
    "restarts": "restarts",
    "input_gradients": "by inputs",
    "weight_gradients": "by weights",
}
_SHORT = {
    "activations": "forward",
    "saved_activations": "saved",
    "activation_gradients": "gradients",
    "weight_gradients": "sums",
    "tables": "losses",
}


def summary(model: Model, profiles: Sequence[Profile]) -> str:
    """Say what the model is, and what is trained."""
    arena = max(moment.total for moment in inference_moments(model))
    first = profiles[0]
    weights = sum(layer.weights for layer in model.layers)
    queries = f", {first.queries} queries for each image and layer" if first.queries else ""
    return "\n".join(
        [
            f"model   {weights:,} weights, {model.macs:,} MACs an image, "
            f"{arena:,} bytes of activations alive at once in inference",
            f"method  {first.method}: {first.weights:,} weights and {first.biases:,} biases of "
            f"{len(first.layers)} layers, batch {first.batch}{queries}",
        ]
    )


def work_table(profiles: Sequence[Profile]) -> str:
    """Million multiply-accumulates for each image by what they are for, and for each step."""
    shown = {k: title for k, title in _WORK.items() if any(getattr(p.work, k) for p in profiles)}
    rows = [
        [
            p.method,
            f"{p.weights:,}",
            f"{p.biases:,}",
            *(f"{getattr(p.work, key) / 1e6:,.3f}" for key in shown),
            f"{p.work.macs / 1e6:,.3f}",
            f"{p.step_macs / 1e6:,.1f}",
            f"{p.batch * p.work.forwards:,}",
        ]
        for p in profiles
    ]
    titles = ["MMACs an image", "weights", "biases", *shown.values()]
    return table([*titles, "all", "a step", "forwards"], rows, left=("MMACs an image",))


def memory_table(profiles: Sequence[Profile]) -> str:
    """Bytes by part, at the peak."""
    shown = [part for part in PARTS if any(getattr(p.memory, part) for p in profiles)]
    rows = [
        [
            p.method,
            *(f"{getattr(p.memory, part):,}" for part in shown),
            f"{p.memory.sram:,}",
            f"{p.memory.frozen:,}",
        ]
        for p in profiles
    ]
    titles = ["bytes", *(_SHORT.get(part, part) for part in shown), "SRAM", "flash"]
    return table(titles, rows, left=("bytes",))


def plan_table(model: Model, device: _core.DeviceMemory, layers: Sequence[int]) -> str:
    """Say where every activation lives: of the main pass, and at the peak of the queries."""
    names = {op["index"]: op["name"] for op in model.core.ops()}
    peak = peak_moment(device, layers)
    buffers = device.plan()
    if peak.layer is not None:
        buffers += [b for b in device.query_plan(peak.layer) if b["pass"] == "query"]
    alive = {(b["pass"], b["offset"], b["what"]) for b in peak.buffers}
    rows = [
        [
            b["pass"],
            f"{b['what']} (lines)" if b["lines"] else b["what"],
            f"{b['bytes']:,}",
            f"{b['offset']:,}",
            names[b["first"]],
            names.get(b["last"], "end"),
            "*" if (b["pass"], b["offset"], b["what"]) in alive else "",
        ]
        for b in buffers
    ]
    titles = ["pass", "buffer", "bytes", "offset", "from", "to", "peak"]
    left = ("pass", "buffer", "from", "to", "peak")
    parts = [*_streams(device, names), table(titles, rows, left=left), _peak(peak, device, names)]
    return "\n".join(parts)


def _streams(device: _core.DeviceMemory, names: dict[int, str]) -> list[str]:
    return [
        f"streams {names[begin]} .. {names[end]} through line buffers, {band} rows at once"
        for begin, end, band in device.segments()
    ]


def _peak(peak: PlanMoment, device: _core.DeviceMemory, names: dict[int, str]) -> str:
    where = "the main pass" if peak.layer is None else f"a query of {names[peak.layer]}"
    return (
        f"peak    {peak.bytes:,} bytes alive while {names[peak.op]} runs in {where}; "
        f"{device.activation_bytes:,} bytes planned, in which a layer's gradient is summed up, too"
    )
