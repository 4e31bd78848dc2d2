"""How pixels become a network's int8 input, in words that stand in every exported file."""

from __future__ import annotations

from pmt.net.graph import Graph

__all__ = ["input_formula"]


def input_formula(graph: Graph) -> str:
    """Return the formula with the graph's numbers.

    Parameters
    ----------
    graph : Graph
        The network.

    Returns
    -------
    str
        ``int8 = pixel - 128`` where it is just that, otherwise ``int8 =
        round((pixel - mean) / std / scale) + zero_point`` with every number. Results are clipped
        to -128..127; halves round to even.
    """
    tensor = graph.tensors[graph.input]
    pairs = set(zip(graph.input_mean, graph.input_std, strict=True))
    if len(pairs) == 1:
        ((mean, std),) = pairs
        offset = tensor.zero_point - mean
        if abs(std * tensor.scale - 1) < 1e-6 and abs(offset - round(offset)) < 1e-6:
            return f"int8 = pixel {_signed(round(offset))}"
    means = ", ".join(f"{mean:.9g}" for mean in graph.input_mean)
    stds = ", ".join(f"{std:.9g}" for std in graph.input_std)
    return (
        f"int8 = round((pixel - mean) / std / {tensor.scale:.9g}) {_signed(tensor.zero_point)}, "
        f"mean ({means}), std ({stds}), of pixels 0..255 for each channel"
    )


def _signed(value: int) -> str:
    return f"{'-' if value < 0 else '+'} {abs(value)}"
