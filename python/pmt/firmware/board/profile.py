"""Memory and work of methods on a model and on a board, side by side; nothing is trained."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pmt._util.checks import checked_names, kind_of
from pmt.errors import OptionError
from pmt.firmware.board.instructions import KERNELS, Instructions, count_instructions
from pmt.firmware.board.memory import BoardMemory, board_memory, with_linked
from pmt.firmware.export.report import Latency, project_latency
from pmt.firmware.export.target import Target, find_target
from pmt.methods.catalog import BACKPROP
from pmt.model import Model
from pmt.model.model import check_model
from pmt.profiling.profile import (
    METHODS,
    SCHEME_OPTIONS,
    Profile,
    profile_method,
    profiled_method,
    zeroth_order_options,
)

__all__ = [
    "PROJECTED",
    "BoardProfile",
    "InstructionProfile",
    "MethodProfiles",
    "profile_board",
    "profile_instructions",
    "profile_methods",
]

PROJECTED = "stm32f746g-disco"


@dataclass(frozen=True)
class BoardProfile:
    """Memory on a board.

    Attributes
    ----------
    board : Target
        The board.
    methods : list of BoardMemory
        Memory of each method.
    link : bool
        Whether firmware was asked for.
    """

    board: Target
    methods: list[BoardMemory]
    link: bool

    def to_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return {
            "board": {
                "name": self.board.name,
                "ram": self.board.ram.bytes,
                "flash": self.board.flash.bytes,
                "methods": [row.to_json() for row in self.methods],
            }
        }


@dataclass(frozen=True)
class MethodProfiles:
    """Methods side by side, the first one first.

    Attributes
    ----------
    model : Model
        The network.
    profiles : list of Profile
        Work and memory of each method.
    left_out : dict of str to str
        Why a method is not among them.
    board : BoardProfile or None
        Memory on a board, if one was named.
    """

    model: Model
    profiles: list[Profile]
    left_out: dict[str, str]
    board: BoardProfile | None

    def to_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return {
            "profiles": [profile.to_json() for profile in self.profiles],
            "left_out": self.left_out,
            **({} if self.board is None else self.board.to_json()),
        }


def profile_methods(
    model: Model,
    method: str,
    *,
    against: tuple[str, ...] | Literal["all"] = (),
    layers: str | None = None,
    batch: int | None = None,
    queries: int | None = None,
    scheme: str | None = None,
    target: str | None = None,
    link: bool = False,
) -> MethodProfiles:
    """Count the cost of methods on a model: multiply-accumulates, and memory by part.

    Parameters
    ----------
    model : Model
        The network.
    method : str
        One of :data:`pmt.profiling.profile.METHODS`.
    against : tuple of str or "all"
        Methods beside it, with the same batch, and the same layers and queries where they have no
        own; "all" leaves out those that the model cannot have.
    layers : str, optional
        Layers to train; by default the method's.
    batch : int, optional
        Images of a step; by default the method's.
    queries : int, optional
        Queries for each image and layer; by default the method's.
    scheme : str, optional
        For ``mcutrain`` and ``tinytrain``: a published scheme or a JSON file.
    target : str, optional
        Board to compare the memory with, or the path of a TOML file that describes one.
    link : bool
        Build the firmware of the methods that fit, too.

    Returns
    -------
    MethodProfiles
        The counts.

    Raises
    ------
    ValueError
        If a method, a layer, a scheme or a board is unknown, a number is out of range, or a
        method that was named does not go with the model.
    OSError
        If the scheme cannot be read, or firmware is not built.
    """
    check_model(model)
    takes_all = isinstance(against, str) and against == "all"
    others = METHODS if takes_all else checked_names("against", against)
    if scheme and not SCHEME_OPTIONS.keys() & {method, *others}:
        rule = f"={scheme!r} is an option of {' and '.join(SCHEME_OPTIONS)} alone: leave it out"
        raise OptionError("scheme", rule)
    if queries is not None and BACKPROP.keys() >= {method, *others}:
        rule = f"={queries} is an option of perturbed forwards, which {method} has not"
        raise OptionError("queries", f"{rule}: leave it out")
    first = profile_method(
        model, method, layers=layers, batch=batch, queries=queries, scheme=scheme
    )
    profiles, left_out = [first], {}
    for name in others:
        if name == method:
            continue
        try:
            other = profiled_method(name)
            found = profile_method(
                model,
                name,
                layers=None if other.own_layers else layers,
                batch=first.batch,
                queries=None if other.own_queries else queries,
                scheme=scheme if other.own_layers else None,
            )
        except ValueError as error:
            if not takes_all:
                raise
            left_out[name] = str(error)
        else:
            profiles.append(found)
    board = None if target is None else profile_board(model, profiles, target, link=link)
    return MethodProfiles(model, profiles, left_out, board)


def profile_board(
    model: Model, profiles: Sequence[Profile], target: str, *, link: bool = False
) -> BoardProfile:
    """Compare the memory of methods with a board's.

    With ``link`` the firmware of the methods that fit is built, with the errors of
    :func:`pmt.firmware.board.memory.with_linked`.
    """
    check_model(model)
    if not isinstance(profiles, Sequence) or not all(isinstance(p, Profile) for p in profiles):
        raise TypeError(
            f"profiles is {kind_of(profiles)}: must be a list of what "
            "pmt.profiling.profile.profile_method(model, method) returns"
        )
    board = find_target(target)
    rows = [board_memory(model, one, board) for one in profiles]
    if link:
        rows = with_linked(model, rows)
    return BoardProfile(board, rows, link)


@dataclass(frozen=True)
class InstructionProfile:
    """Instructions of each set of kernels, and the factors of a projected latency."""

    counts: tuple[Instructions, ...]
    latency: Latency

    def to_json(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return {
            "instructions": [count.to_json() for count in self.counts],
            "latency": vars(self.latency),
        }


def profile_instructions(
    model: Model,
    *,
    kernels: Sequence[str] = KERNELS[:1],
    method: str | None = None,
    layers: str | None = None,
    queries: int | None = None,
    target: str = PROJECTED,
    clock: float | None = None,
    cycles_per_instruction: float | None = None,
) -> InstructionProfile:
    """Count the instructions of a Cortex-M7, op by op, with the model run under QEMU.

    Parameters
    ----------
    model : Model
        The network.
    kernels : sequence of str
        Sets of kernels side by side, of :data:`pmt.firmware.board.instructions.KERNELS`.
    method : str, optional
        A zeroth-order method, of which a training step of one image is counted, too.
    layers, queries : str and int, optional
        Options of the method, as in :func:`profile_methods`.
    target : str
        Board to project the latency for.
    clock : float, optional
        MHz of the core; by default the board's.
    cycles_per_instruction : float, optional
        Cycles per instruction in the projection; by default 1, an assumption.

    Returns
    -------
    InstructionProfile
        The counts.

    Raises
    ------
    ValueError
        If a set of kernels, the method or the board is unknown.
    FileNotFoundError, ChildProcessError
        If a compiler or QEMU is missing, or fails.
    """
    latency = project_latency(find_target(target), clock, cycles_per_instruction)
    options = None
    if method is not None:
        options = zeroth_order_options(method, layers=layers, queries=queries)
    counts = count_instructions(model, kernels=list(dict.fromkeys(kernels)), options=options)
    return InstructionProfile(counts, latency)
