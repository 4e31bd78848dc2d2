"""Targets and the TOML files that describe them."""

from pathlib import Path

import pytest

from pmt._util.native_files import firmware_folder
from pmt._util.parsing import parse_plain_toml, parse_toml
from pmt.firmware.export import targets
from pmt.firmware.export.target import Region, Wiring, find_target

BOARDS = firmware_folder() / "boards"
DISCO = (BOARDS / "stm32f746g-disco" / "target.toml").read_text()


def write(folder: Path, text: str) -> str:
    path = folder / "mine.toml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("name", "flash", "ram", "clock"),
    [
        ("qemu-mps2-an500", (0x0, 4194304), (0x20000000, 4194304), 25_000_000),
        ("stm32f746g-disco", (0x08000000, 1048576), (0x20010000, 262144), 216_000_000),
        ("stm32h7b3i-dk", (0x08000000, 2097152), (0x24000000, 1048576), 280_000_000),
    ],
)
def test_memory_of_the_boards(name, flash, ram, clock):
    target = find_target(name)
    assert (target.flash, target.ram) == (Region(*flash), Region(*ram))
    assert target.clock_hz == clock
    assert target.folder == BOARDS / name


@pytest.mark.parametrize("name", targets())
def test_every_target_is_read_without_tomllib_too(name):
    text = (BOARDS / name / "target.toml").read_text()
    assert parse_plain_toml(text) == parse_toml(text, name)


def test_an_emulated_board_takes_the_sizes_of_another():
    target = find_target("qemu-mps2-an500").limited_to(find_target("stm32f746g-disco"))
    assert target.flash == Region(0x0, 1048576)
    assert target.ram == Region(0x20000000, 262144)
    assert (target.name, target.like) == ("qemu-mps2-an500", "stm32f746g-disco")


def test_a_users_board_of_known_sources(tmp_path):
    """A board with the same chip: the entries given replace the known board's."""
    path = write(
        tmp_path,
        'board = "stm32f746g-disco"\ndescription = "mine"\nsupply = "ldo"\ncrystal_hz = 8000000\n'
        "[ram]\norigin = 0x20000000\nbytes = 0x50000\n",
    )
    target = find_target(path)
    assert (target.name, target.description) == ("mine", "mine")
    assert target.ram == Region(0x20000000, 327680)
    assert target.flash == Region(0x08000000, 1048576)
    assert target.folder == BOARDS / "stm32f746g-disco"
    assert target.wiring == Wiring("ldo", 8_000_000)


def test_a_users_board_of_own_sources(tmp_path):
    target = find_target(write(tmp_path, DISCO))
    assert target.folder == tmp_path
    assert target.drivers == ("cortex_m", "stm32", "stm32f7", "sd")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("clock_hz = 216_000_000", "", "mine.toml: clock_hz is missing"),
        ("clock_hz = 216_000_000", "clock_hz = 0", r"clock_hz = 0 must be 1000\.\.4000000000"),
        ("clock_hz = 216_000_000", "clock_hz = true", "clock_hz = True must be of type int"),
        ("clock_hz", "clokc_hz", "clokc_hz is unknown; did you mean 'clock_hz'"),
        (
            "bytes = 0x4_0000",
            "bytes = 1000",
            r"ram.bytes = 1000 must be 1024\.\.4294967296 and a multiple of 1024",
        ),
        ("bytes = 0x4_0000", "", "ram.bytes is missing"),
        ("[flash]", "[external]\norigin = 0xC000_0000\n[flash]", "external.bytes is missing"),
        (
            "[flash]",
            "[external]\norigin = 0xC000_0000\nbytes = 100\n[flash]",
            r"external.bytes = 100 must be 1024\.\.4294967296 and a multiple of 1024",
        ),
        ('["cortex_m",', "[1,", "drivers = .* must be a list of strings"),
        ("[flash]", 'board = "nucleo"\n[flash]', "board = 'nucleo' is none of generic, qemu-mps2"),
        ("[flash]", "[flash", "mine.toml: "),
        (
            'supply = "ldo"',
            "",
            'mine.toml: supply is missing: add supply = "ldo", as the stm32f7\'s core is supplied '
            "on this board; with another one it does not run$",
        ),
        ('"ldo"', '"smps"', "mine.toml: supply = 'smps' must be \"ldo\" on an stm32f7$"),
        (
            "crystal_hz = 25_000_000",
            "",
            "crystal_hz is missing: add the frequency of this board's crystal \\(4_000_000 to "
            "26_000_000, a multiple of 1_000_000\\), or 0 where it has none$",
        ),
        *(
            (
                "crystal_hz = 25_000_000",
                f"crystal_hz = {hz}",
                f"crystal_hz = {hz} must be 4_000_000 to 26_000_000, a multiple of 1_000_000, on "
                "an stm32f7, or 0: none$",
            )
            for hz in (-25000000, 1000000, 24500000, 27000000)
        ),
        (
            '["cortex_m", "stm32", "stm32f7", "sd"]',
            '["cortex_m"]',
            "supply is for the drivers stm32f7, stm32h7 alone: remove it$",
        ),
    ],
)
def test_a_wrong_file_is_refused_with_the_entry(tmp_path, old, new, message):
    assert old in DISCO
    with pytest.raises(ValueError, match=message):
        find_target(write(tmp_path, DISCO.replace(old, new, 1)))


@pytest.mark.parametrize(
    ("board", "regions", "message"),
    [
        ("f746g", "[ram]\norigin = 0x2000_0000\nbytes = 0x5_0000", ""),
        (
            "f746g",
            "[ram]\norigin = 0x2001_0000\nbytes = 0x5_0000",
            r"ram.origin = 0x20010000 and ram.bytes = 0x50000 end at 0x20060000, and the ram of "
            r"stm32f746ngh6 is 0x20000000 to 0x20050000; correct them, or chip",
        ),
        ("f746g", "[flash]\norigin = 0x0808_0000\nbytes = 0x8_0000", ""),
        ("f746g", "[flash]\norigin = 0x20_0000\nbytes = 0x10_0000", ""),
        (
            "f746g",
            "[flash]\norigin = 0x0800_0000\nbytes = 0x20_0000",
            r"end at 0x8200000, and the flash of stm32f746ngh6 is 0x8000000 to 0x8100000 or 0x2000",
        ),
        (
            "f746g",
            'chip = "stm32f746zet6"\n[flash]\norigin = 0x0800_0000\nbytes = 0x10_0000',
            r"and the flash of stm32f746zet6 is 0x8000000 to 0x8080000",
        ),
        ("f746g", 'chip = "stm32f767zit6"\n[flash]\norigin = 0x0800_0000\nbytes = 0x20_0000', ""),
        ("h7b3i", "[ram]\norigin = 0x3000_0000\nbytes = 0x2_0000", ""),
        (
            "h7b3i",
            "[ram]\norigin = 0x2400_0000\nbytes = 0x14_0000",
            r"and the ram of stm32h7b3lih6q is 0x24000000 to 0x24100000 or 0x20000000 to 0x200200",
        ),
    ],
)
def test_regions_lie_in_the_memory_of_a_known_chip(board, regions, message, tmp_path):
    known = {"f746g": "stm32f746g-disco", "h7b3i": "stm32h7b3i-dk"}[board]
    file = tmp_path / "mine.toml"
    wiring = 'supply = "ldo"\ncrystal_hz = 8_000_000\n'
    file.write_text(f'board = "{known}"\n{wiring}{regions}\n')
    if not message:
        assert find_target(str(file)).name == "mine"
        return
    with pytest.raises(ValueError, match=message):
        find_target(str(file))


def test_the_wiring_of_a_known_board_is_not_taken_over(tmp_path):
    """Another board with the chip may be supplied otherwise: its core would not run."""
    text = 'board = "stm32h7b3i-dk"\n'
    with pytest.raises(
        ValueError, match=r'supply is missing: add supply = "ldo" or "smps" or "smps_1v8'
    ):
        find_target(write(tmp_path, text))
    text += 'supply = "ldo"\n'
    with pytest.raises(
        ValueError, match=r"crystal_hz is missing: .* a multiple of 2_000_000\), or 0"
    ):
        find_target(write(tmp_path, text))
    text += "crystal_hz = 0\n"
    assert find_target(write(tmp_path, text)).wiring == Wiring("ldo", 0)
    for hz in (25_000_000, 52_000_000):
        with pytest.raises(ValueError, match=f"crystal_hz = {hz} must be 4_000_000 to 50_000_000"):
            find_target(write(tmp_path, text.replace("crystal_hz = 0", f"crystal_hz = {hz}")))


@pytest.mark.parametrize(
    ("name", "wiring"),
    [
        ("stm32f746g-disco", Wiring("ldo", 25_000_000)),
        ("stm32h7b3i-dk", Wiring("smps", 24_000_000)),
        ("qemu-mps2-an500", None),
        ("generic", None),
    ],
)
def test_the_wiring_of_the_boards(name, wiring):
    assert find_target(name).wiring == wiring


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[a.b]\n", r"line 1: \[a.b\] is not a table of one level"),
        ("\nx\n", "line 2: x is not `key = value`"),
        ("x = 'a'\n", "line 1: 'a' is not a number, string in double quotes or array"),
    ],
)
def test_the_plain_reader_says_what_it_cannot_read(text, message):
    with pytest.raises(ValueError, match=message):
        parse_plain_toml(text)


def test_the_plain_reader_knows_a_hash_in_a_string():
    assert parse_plain_toml('x = "a # b"  # c\n[t]\ny = [1, 2] # d\nz = -0x1_0\n') == {
        "x": "a # b",
        "t": {"y": [1, 2], "z": -16},
    }


@pytest.mark.parametrize(
    ("flags", "dsp"),
    [
        (["-mcpu=cortex-m33", "-mfloat-abi=hard"], True),
        (["-mcpu=cortex-m4"], False),
        (["-mcpu=cortex-m3"], False),
        ([], False),
    ],
)
def test_which_processors_have_kernels_of_their_own(tmp_path, flags, dsp):
    file = tmp_path / "board.toml"
    wiring = 'supply = "ldo"\ncrystal_hz = 0\n'
    file.write_text(f'board = "stm32f746g-disco"\n{wiring}flags = {flags}\n')
    assert find_target(str(file)).has_dsp == dsp
    assert find_target("stm32h7b3i-dk").has_dsp
