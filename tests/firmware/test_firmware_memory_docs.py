"""The memory in docs/guides/firmware.md is what is planned and linked; its marks are QEMU's."""

import os
import re
from pathlib import Path

from firmware_tools import need_firmware_tools

import pmt
from pmt.firmware.board.memory import link_firmware
from pmt.firmware.export.report import planned_sizes
from pmt.firmware.export.target import find_target
from pmt.train.prepare import without_statistics

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "firmware.md"
ROW = re.compile(r"^\| (?:all 43|`?\w+`?) \| `(stm32\S+)` \|.*\|$", re.MULTILINE)
QUERIES = 50  # as the table says
FLASH = 7  # the column


def test_the_sizes_of_the_table_are_current():
    """With PMT_UPDATE_GOLDEN=1 the column of flash and that of all SRAM are written instead."""
    need_firmware_tools("make")
    text = PAGE.read_text()
    model = pmt.load("cifar10_mcunet")
    image = without_statistics(model).image()
    rows = [[cell.strip() for cell in match[0].split("|")[1:-1]] for match in ROW.finditer(text)]
    assert len(rows) == 7
    emulated = find_target("qemu-mps2-an500")
    trainings = []
    for row in rows:
        layers = "all" if row[0].startswith("all") else row[0].strip("`")
        options = pmt.preset("paper", queries=QUERIES, batch=1, layers=layers)
        chosen = model.select_layers(layers)
        board = emulated.limited_to(find_target(row[1].strip("`")))
        planned = planned_sizes(board, model, options.to_core(), chosen, 1)
        assert row[3] == f"{planned.arena:,}", row
        trainings.append(planned)
    linked = link_firmware(emulated, image, trainings)
    current = [
        [*row[:FLASH], f"{sizes.flash:,}", f"{sizes.ram / 1024:.1f} KB", *row[FLASH + 2 :]]
        for row, sizes in zip(rows, linked, strict=True)
    ]
    if os.environ.get("PMT_UPDATE_GOLDEN") == "1":
        for old, new in zip(rows, current, strict=True):
            text = text.replace(_line(old), _line(new))
        PAGE.write_text(text)
        rows = current
    assert rows == current


def _line(cells: list[str]) -> str:
    return "".join(f"| {cell} " if cell else "| " for cell in cells) + "|"
