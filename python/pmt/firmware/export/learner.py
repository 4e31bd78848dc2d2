"""A learner as a firmware project: its board learns by itself, or only predicts."""

from __future__ import annotations

import hashlib
import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from pmt import _core
from pmt._util.checks import checked_flag
from pmt._util.text import counted, table
from pmt.errors import OptionError, TableError
from pmt.firmware.export import layout
from pmt.firmware.export.folder import LEARNER_FILE, checked_out, write_project
from pmt.firmware.export.layout import Format
from pmt.firmware.export.linked import LinkedParts, linked_parts
from pmt.firmware.export.report import FixedMemory
from pmt.firmware.export.target import Region, Target, find_target, parse_size
from pmt.model import Model
from pmt.model.card import BLOCK, PAYLOAD
from pmt.model.loading import load
from pmt.model.model import check_model
from pmt.train.learner_setup import (
    EpochArguments,
    LearnerSizes,
    aligned_weights,
    check_clean,
    epochs_of,
    learner_image,
    learner_room,
    plan_sizes,
)
from pmt.train.options import TrainingOptions
from pmt.train.prepare.input_choice import with_any_stage
from pmt.train.prepare.preparation import NOT_ALIGNED

Frames = Literal["board", "host"]
FRAMES: tuple[Frames, ...] = get_args(Frames)
States = Literal["card", "flash"]
STATES: tuple[States, ...] = get_args(States)
SAMPLES = 64  # where no other number is given
# Memory of the program at most, beside arena and model, on the boards that come with pmt; tests
# hold what is linked to it.
FIXED = FixedMemory(stack=4096, variables=3600, code=136_704)
# Bytes of code at least, of parts that a learner may be without.
_EPOCHS_CODE = 21_036
_PART_CODE = {
    "input_stage": 9_500,
    "input_search": 4_500,
    "learning": 29_548,
    "kept_activations": 1_024,
    "windows": 8_192,
    "reliability": 4_000,
}

# Header and function of the program that open its states.
_CARD_STATES = ("common/card_slots.hpp", "firmware::open_card_states")
_FLASH_STATES = {
    "make": ("drivers/stm32f7/flash_states.hpp", "stm32f7::open_flash_states"),
    "zephyr": ("port/flash_states.hpp", "zephyr::open_flash_states"),
}
# Zephyr's settings for them; MPU_ALLOW_FLASH_WRITE is Arm's alone.
_ZEPHYR_SETTINGS = {
    "card": ("SDHC", "DISK_DRIVER_SDMMC"),
    "flash": ("FLASH", "FLASH_MAP", "MPU_ALLOW_FLASH_WRITE"),
}
# Where the project's README says that they are; a program that only predicts has none.
_ZEPHYR_STATES = {
    "card": """\
- States: the first blocks of the tree's SD card (`zephyr,sdmmc-disk`). Without a card, remove
  `CONFIG_SDHC` and `CONFIG_DISK_DRIVER_SDMMC` from `prj.conf`: states then end with a reset.
""",
    "flash": """\
- States: the halves of the tree's partition `storage_partition`, which must be whole pages. For a
  processor that is no Arm, remove `CONFIG_MPU_ALLOW_FLASH_WRITE` from `prj.conf`.
""",
}
# Title and text of the project's README, for a program that only predicts and for one that learns.
_TITLES = ("Inference", "A learner")
_ABOUT = (
    "The program predicts frames that the serial line brings",
    "The program predicts, takes samples in, aligns its network to them, solves its head,\n"
    "and keeps the best state through resets: all on the board",
)


@dataclass(frozen=True)
class LearnerExport:
    """Summary of an exported learner; sizes in bytes.

    Attributes
    ----------
    path : pathlib.Path
        The project's folder.
    target : str
        The board.
    format : {"make", "zephyr"}
        The build system.
    windows, reliability : bool
        Whether it aligns windows, and weighs channels by their reliability, too.
    chooses_input : bool
        Whether it chooses filters before the network.
    samples, held_out : int
        Most samples, and most of them to choose a state.
    keeps_confirmed : bool
        Whether it predicts while it learns a second time.
    keeps_activations : bool
        Whether it keeps activations in external memory.
    frames : {"board", "host"}
        Where frames wait.
    states : {"card", "flash"}
        Where states outlive a reset.
    sizes : LearnerSizes
        The learner's memory.
    frame_bytes : int
        Of all frames in the arena.
    model_bytes, statistics_bytes : int
        In flash.
    stack_bytes, variable_bytes, code_bytes : int
        Of the program, at most; variables and code 0 where the system's come on top.
    ram_bytes, flash_bytes : int
        Budgets: the linker's regions, or those of the target's file.
    """

    path: Path
    target: str
    format: str
    windows: bool
    reliability: bool
    chooses_input: bool
    samples: int
    held_out: int
    keeps_confirmed: bool
    keeps_activations: bool
    frames: str
    states: str
    sizes: LearnerSizes
    frame_bytes: int
    model_bytes: int
    statistics_bytes: int
    stack_bytes: int
    variable_bytes: int
    code_bytes: int
    ram_bytes: int
    flash_bytes: int

    @property
    def arena_bytes(self) -> int:
        """The arena: the learner's memory, and the frames that are kept there."""
        return self.sizes.needed + self.frame_bytes

    @property
    def ram_used(self) -> int:
        """RAM at most."""
        return self.arena_bytes + self.stack_bytes + self.variable_bytes

    @property
    def flash_used(self) -> int:
        """Flash at most."""
        return self.model_bytes + self.statistics_bytes + self.code_bytes

    def memory_table(self) -> str:
        """Return the contents of RAM and flash, as text."""
        sizes = self.sizes
        rows = [("persistent", sizes.persistent)]
        rows += [(f"phase {name}", size) for name, size in sizes.phases().items()]
        rows += [("learner: persistent and largest phase", sizes.needed)]
        if self.frame_bytes:
            rows += [(counted(self.samples, "frame"), self.frame_bytes)]
        rows += [("stack", self.stack_bytes)]
        if self.variable_bytes:
            rows += [("variables, at most", self.variable_bytes)]
        rows += [("RAM", self.ram_used), ("", 0), ("model", self.model_bytes)]
        if self.statistics_bytes:
            rows += [("statistics of clean images", self.statistics_bytes)]
        if self.code_bytes:
            rows += [("code, at most", self.code_bytes)]
        rows += [("flash", self.flash_used)]
        if sizes.external:
            rows += [("", 0), ("external: activations", sizes.external)]
        text = [(name, f"{size:,}" if name else "") for name, size in rows]
        return table(["memory", "bytes"], text, left=["memory"])

    def __str__(self) -> str:
        kind = f"a learner for {self.target}, {counted(self.samples, 'sample')}"
        if self.samples == 0:
            kind = f"a program for {self.target} that only predicts"
        return (
            f"{self.path}: {kind}\n\n"
            f"{self.memory_table()}\n\n"
            f"{self._total()}\n{self._remarks()}next: {self._next()}"
        )

    def _total(self) -> str:
        if self.format == "zephyr":
            return (
                f"RAM {self.ram_used:,} bytes, flash {self.flash_used:,}; code and variables, the "
                "kernel's too, come on top"
            )
        return (
            f"RAM {self.ram_used:,} of {self.ram_bytes:,} bytes, "
            f"flash {self.flash_used:,} of {self.flash_bytes:,}"
        )

    def _next(self) -> str:
        place = shlex.quote(str(self.path))
        if self.format == "zephyr":
            return (
                f"west build -b BOARD {place} && west flash, then pmt stream {place} --port PORT "
                "--data DIR"
            )
        return f"pmt stream {place} --data DIR"

    def _remarks(self) -> str:
        """Return why a phase may not run, a line each."""
        remarks = []
        if self.samples > 0 and self.sizes.align == 0:
            remarks.append(NOT_ALIGNED)
        if self.samples > 0 and self.frames == "host":
            remarks.append("frames wait on the PC, from which phases read them over the line")
        fewest = _core.INPUT_FEWEST_IMAGES
        if self.chooses_input and self.samples - self.held_out < fewest:
            remarks.append(
                f"filters are chosen on {fewest} frames or more that are not held out, and up to "
                f"{self.held_out} of {self.samples} are: lower --held-out, or raise --samples"
            )
        return "".join(f"{remark}\n" for remark in remarks)

    def to_json(self) -> dict[str, Any]:
        """Return the same for programs."""
        figures = {**asdict(self), "path": str(self.path), "arena_bytes": self.arena_bytes}
        return {**figures, "ram_used": self.ram_used, "flash_used": self.flash_used}


def export_learner(
    model: Model,
    *,
    target: str,
    out: str | Path,
    like: str | None = None,
    format: Format = "make",
    windows: bool = False,
    reliability: bool = False,
    choose_input: bool = False,
    samples: int = SAMPLES,
    held_out: int | None = None,
    keeps_confirmed: bool = False,
    keeps_activations: bool = False,
    frames: Frames | None = None,
    states: States = "card",
    options: TrainingOptions | None = None,
    select: Sequence[str] | None = None,
    ram: str | int | None = None,
    flash: str | int | None = None,
    force: bool = False,
) -> LearnerExport:
    """Write a firmware project whose board learns by itself.

    Parameters
    ----------
    model : Model
        The model, with statistics of clean images where it is to be aligned.
    target, like, out, ram, flash, force
        As :func:`pmt.firmware.export.export`; a target that is linked and has a serial line to
        read from, or ``generic`` for Zephyr.
    format : {"make", "zephyr"}
        Build system: ``make`` and CMake, or, with the target ``generic``, Zephyr's.
    windows : bool
        Align windows before the channels, as in ``pmt.Learner``: it takes RAM for their layers'
        weights, and flash for the windows of clean images.
    reliability : bool
        Weigh channels by their reliability, too, as in ``pmt.Learner``: it takes RAM for the
        weights of nearly all layers, and needs ``windows``.
    choose_input : bool
        Choose filters before the network on the board, as in ``pmt.Learner``: it keeps frames of
        the sensor's size.
    samples : int
        Most samples; 0 for a program that only predicts.
    held_out : int, optional
        Most samples to choose a state with; by default a quarter.
    keeps_confirmed : bool
        Whether the confirmed state stays in RAM while another one is learned. Without, nothing is
        predicted from the second adaptation's begin to its end.
    keeps_activations : bool
        Keep activations in the board's external memory while channels are aligned, as in
        ``pmt.Learner``; its ``target.toml`` names that memory.
    frames : {"board", "host"}, optional
        Where frames wait while a phase reads them: behind the learner's memory, or on the PC at
        the other end of the line; by default on the board where they fit.
    states : {"card", "flash"}
        Where states outlive a reset: on the board's card, or in flash. That is the last two sectors
        of an STM32F746's, below which the program then ends, or Zephyr's ``storage_partition``.
    options : TrainingOptions, optional
        Epochs of perturbed forwards, as in ``pmt.Learner``; by default there are none.
    select : sequence of str, optional
        Blocks or layers that the board chooses from before them, as in ``pmt.Learner``.

    Returns
    -------
    LearnerExport
        Its memory; prints as a table.

    Raises
    ------
    ValueError
        If an argument is outside its range, or the learner does not fit the budgets.
    FileExistsError, OSError
        As :func:`pmt.firmware.export.export`.
    """
    check_model(model)
    flags = {"windows": windows, "reliability": reliability, "choose_input": choose_input}
    flags |= {"keeps_confirmed": keeps_confirmed, "keeps_activations": keeps_activations}
    flags["force"] = force
    for name, flag in flags.items():
        checked_flag(name, flag)
    board = find_target(target, like)
    _check_line(board, format)
    samples, held_out = learner_room(
        samples,
        held_out,
        choose_input,
        options=options,
        select=select,
        windows=windows or None,
        reliability=reliability or None,
        keeps_activations=keeps_activations or None,
    )
    weights = aligned_weights(windows, reliability)
    if frames is not None and frames not in FRAMES:
        raise OptionError("frames", f"={frames!r} must be one of {', '.join(FRAMES)}")
    if states not in STATES:
        raise OptionError("states", f"={states!r} must be one of {', '.join(STATES)}")
    if states == "flash" and format == "make":
        board = _below_states(board)
    place = checked_out(out, force=force, learner=True)
    if choose_input:
        model = with_any_stage(model)
    image, clean = learner_image(model, samples, weights, choose_input)
    check_clean(clean, choose_input, keeps_activations)
    epochs = epochs_of(model, options, samples, select)
    keeps = (keeps_confirmed, keeps_activations)
    sizes = plan_sizes(image, clean, weights, choose_input, samples, held_out, *keeps, epochs)
    _check_external(board, sizes.external, keeps_activations)
    fixed = FIXED if board.linked else FixedMemory(board.stack_bytes, 0, 0)
    budgets = {"ram": board.ram.bytes, "flash": board.flash.bytes}
    for name, given in (("ram", ram), ("flash", flash)):
        budgets[name] = budgets[name] if given is None else parse_size(name, given)
    if states == "flash" and format == "make":
        budgets["flash"] = min(budgets["flash"], board.flash.bytes)
    parts = linked_parts(
        model.core,
        [] if epochs is None else [(epochs[0], block) for block in epochs[1]],
        {
            "input_search": choose_input,
            "learning": samples > 0,
            "kept_activations": sizes.external > 0,
            "windows": windows,
            "reliability": reliability,
        },
    )
    all_frames = samples * math.prod(model.image_shape if choose_input else model.input_shape)
    left = budgets["ram"] - sizes.needed - fixed.stack - fixed.variables
    where = frames or ("board" if all_frames <= left else "host")
    report = LearnerExport(
        path=place,
        target=board.name,
        format=format,
        windows=windows,
        reliability=reliability,
        chooses_input=choose_input,
        samples=samples,
        held_out=held_out,
        keeps_confirmed=keeps_confirmed,
        keeps_activations=keeps_activations,
        frames=where,
        states=states,
        sizes=sizes,
        frame_bytes=all_frames if where == "board" else 0,
        model_bytes=len(image),
        statistics_bytes=0 if clean is None else clean.nbytes,
        stack_bytes=fixed.stack,
        variable_bytes=fixed.variables,
        code_bytes=_code_bytes(parts) if fixed.code else 0,
        ram_bytes=budgets["ram"],
        flash_bytes=budgets["flash"],
    )
    _check_fits(report, board)
    project = _project(report, board, image, b"" if clean is None else clean.tobytes())
    project |= parts.headers()
    project.update(_epochs(model, epochs))
    project[LEARNER_FILE] = _arguments(report, board, options, select)
    inputs = {"model": hashlib.sha256(model.image()).hexdigest()}
    write_project(place, project, None, inputs)
    return report


def _check_line(board: Target, build_system: str) -> None:
    """Refuse a build system without a port for learners, and a board whose line none can read."""
    layout.check_format(build_system, board)
    if build_system not in ("make", "zephyr"):
        rule = f"={build_system!r} has no port for a learner: take make, or zephyr with the target "
        raise OptionError("format", f"{rule}generic")
    has_line = "stm32" in board.drivers or (board.folder / "serial.cpp").is_file()
    if build_system == "make" and not has_line:
        raise OptionError(
            "target",
            f"={board.name!r} has no serial line that a learner could read (serial.cpp in its "
            "folder): take qemu-mps2-an500, or generic with the format zephyr, or call "
            "pmt::Learner from your own program",
        )


def _code_bytes(parts: LinkedParts) -> int:
    left_out = sum(size for name, size in _PART_CODE.items() if not parts.flags[name])
    epochs = 0 if parts.bits["estimators"] else _EPOCHS_CODE
    return FIXED.code - parts.saved_bytes() - left_out - epochs


def _below_states(board: Target) -> Target:
    """Return a board with the flash that the program has below the states of a learner."""
    states, flash = board.state_flash, board.flash
    if states is None:
        rule = (
            "='flash' needs a chip whose flash pmt can write above the program, such as that of "
            f"stm32f746g-disco, and {board.name} has none: take "
        )
        raise OptionError("states", rule, "states", "='card'")
    size = min(flash.bytes, states.origin - flash.origin)
    return replace(board, flash=Region(flash.origin, size))


def _check_fits(report: LearnerExport, board: Target) -> None:
    slot = (board.state_flash or board.flash).bytes // 2
    if report.states == "flash" and _state_bytes(report) > slot:
        rule = f"='flash' has {slot:,} bytes for a state, which takes up to "
        raise OptionError("states", f"{rule}{_state_bytes(report):,}: take ", "states", "='card'")
    for name, used, budget in (
        ("RAM", report.ram_used, report.ram_bytes),
        ("flash", report.flash_used, report.flash_bytes),
    ):
        if used > budget:
            kind, remedy = "learner", "take fewer samples"
            if report.windows:
                weighs = report.reliability and name == "RAM"
                remedy += ", or no reliability" if weighs else ", or no windows"
            elif report.frames != "host":
                remedy += ", or frames='host' (--frames host)"
            if report.samples == 0:
                kind, remedy = "program", "take a larger board, or a smaller model"
            raise TableError(
                f"the {kind} takes {used:,} bytes of {name}, and there are {budget:,}; {remedy}",
                report.memory_table(),
            )


def _state_bytes(report: LearnerExport) -> int:
    """Return the bytes of a slot at most: a state is no larger than the persistent part."""
    return BLOCK * (2 + report.sizes.persistent // PAYLOAD)


def _states_check(report: LearnerExport, board: Target) -> str:
    """Return an assertion that the driver's sectors are those that the export has planned."""
    if report.states == "card" or board.state_flash is None:
        return ""
    origin, size = board.state_flash.origin, board.state_flash.bytes
    return (
        f"\nstatic_assert(stm32f7::state_slots_origin == {origin:#x}u && "
        f"2 * stm32f7::state_slot_bytes == {size}u);\n"
    )


def _check_external(board: Target, used: int, wanted: bool) -> None:
    if wanted and board.external is None:
        rule = f": {board.name!r} has no external memory; add [external] to its target.toml"
        raise OptionError("keeps_activations", f"{rule}, or leave it out")
    if board.external is not None and used > board.external.bytes:
        raise ValueError(
            f"the activations take {used:,} bytes of external memory, and {board.name!r} has "
            f"{board.external.bytes:,}; take fewer samples"
        )


def _project(report: LearnerExport, board: Target, image: bytes, clean: bytes) -> dict[str, bytes]:
    states = report.states if report.samples else "card"
    header, opens = _CARD_STATES if states == "card" else _FLASH_STATES[report.format]
    settings = ("DISK_ACCESS", *(_ZEPHYR_SETTINGS[states] if report.samples else ()))
    values = {
        **layout.values_of(board),
        **layout.image_values(image),
        "ARENA_BYTES": report.arena_bytes,
        "LEARNER_BYTES": report.sizes.needed,
        "STACK_BYTES": report.stack_bytes,
        "RAM_BYTES": report.ram_bytes,
        "FLASH_BYTES": report.flash_bytes,
        "TIMEOUT": 300,
        "TITLE": _TITLES[report.samples > 0],
        "ABOUT": _ABOUT[report.samples > 0],
        "MEMORY": escape(report.memory_table(), quote=False),
        **layout.stream_values(report.sizes.streams),
        "CLEAN": "clean" if clean else "nullptr",
        "CLEAN_COUNT": len(clean) // 8,
        "WEIGHTS": aligned_weights(report.windows, report.reliability),
        "CHOOSES_INPUT": str(report.chooses_input).lower(),
        "SAMPLES": report.samples,
        "HELD_OUT": report.held_out,
        "KEEPS_CONFIRMED": str(report.keeps_confirmed).lower(),
        "FRAMES_ON_HOST": str(report.frames == "host").lower(),
        "STATES_HEADER": header,
        "STATES": opens if report.samples else "nullptr",
        "STATES_CHECK": _states_check(report, board),
        "EXTERNAL": "external" if report.sizes.external else "nullptr",
        "EXTERNAL_BYTES": report.sizes.external,
        "ZEPHYR_STATES": _ZEPHYR_STATES[states] if report.samples else "",
        "ZEPHYR_SETTINGS": "\n".join(f"CONFIG_{name}=y" for name in settings),
    }
    files = {
        **layout.source_files(board, learner=True),
        **layout.build_files(board, values, learner=True),
        "card.img": bytes(2 * _state_bytes(report) if report.states == "card" else BLOCK),
        "model/model.pmt": image,
        "model/clean.bin": clean,
    }
    parts = ("zephyr_learner", *(("zephyr_flash",) if states == "flash" else ()))
    return layout.arrange(files, report.format, board, values, *parts)


def _arguments(
    report: LearnerExport,
    board: Target,
    options: TrainingOptions | None,
    select: Sequence[str] | None,
) -> bytes:
    chosen = None if options is None else asdict(options)
    arguments = {
        "pmt": _core.__version__,
        **report.to_json(),
        "machine": board.machine,
        "options": chosen,
        "select": None if select is None else list(select),
    }
    del arguments["path"]
    return (json.dumps(arguments, indent=2) + "\n").encode()


def _epochs(model: Model, epochs: EpochArguments | None) -> dict[str, bytes]:
    """Return the file of the layers and options of the board's training by perturbed forwards."""
    none: EpochArguments = (_core.Options(), (), 1, 1, 0.0, 0.0)
    core, blocks, batch, count, *rates = epochs or none
    values = {
        **layout.block_values(model.core, core, blocks, batch),
        "BATCH": batch,
        "EPOCHS": count,
        "RATE": float(np.float32(rates[0])).hex(),
        "FINAL_RATE": float(np.float32(rates[1])).hex(),
    }
    return layout.filled(layout.templates("epochs"), values)


def export_learner_files(
    model: str, *, importer: Mapping[str, Any] | None = None, **project: Any
) -> LearnerExport:
    """Write a learner of a model file, or of a bundled model's name.

    Parameters
    ----------
    model : str
        The model.
    importer : dict, optional
        Options of :func:`pmt.load`.
    **project
        Arguments of :func:`pmt.export_learner`.

    Returns
    -------
    LearnerExport
        Its memory; prints as a table.

    Raises
    ------
    FileNotFoundError, ValueError, TypeError, ImportError
        If the model cannot be read.
    ValueError, FileExistsError, OSError
        As :func:`pmt.export_learner`.
    """
    return export_learner(load(model, **importer or {}), **project)
