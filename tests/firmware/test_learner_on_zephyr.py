"""A learner as a Zephyr application: its port, compiled and run against declarations of Zephyr.

Zephyr is not installed here. ``tests/support/fake_zephyr`` has the functions that the port calls: a
UART on standard input and output, whose interrupts come while the thread waits, and storage in
files.
"""

import re
import subprocess
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from firmware_tools import COMPILER, CORTEX_M7, need_firmware_tools, succeed
from networks import network_with_statistics
from required import need_tools

from pmt import _core, corruptions, datasets
from pmt.cli.program import main
from pmt.firmware import stream as streaming
from pmt.firmware.export import export_learner
from pmt.firmware.stream import Board, stream

FAKES = Path(__file__).parents[1] / "support" / "fake_zephyr"
FLAGS = (
    *("-std=c++17", "-O1", "-fno-exceptions", "-fno-rtti", "-ffp-contract=off", "-fno-math-errno"),
    *("-Wall", "-Wextra", "-Werror", "-DCONFIG_INIT_STACKS", "-DCONFIG_THREAD_STACK_INFO"),
)
ALIGN = _core.LEARNER_PHASES.index("align")
FLASH_BYTES = 65536


@pytest.fixture(scope="module")
def model():
    return network_with_statistics()


@pytest.fixture(scope="module")
def projects(model, tmp_path_factory):
    """Export with states on a card and in flash; the programs are built for this machine."""
    need_tools("g++", packages="g++")
    folder = tmp_path_factory.mktemp("zephyr")
    for states, frames, own_line in (("card", "board", 0), ("flash", "host", 1)):
        out = folder / states
        export = {"target": "generic", "format": "zephyr", "states": states, "frames": frames}
        export_learner(model, out=out, samples=24, held_out=5, **export)
        config = out / "model" / "config.hpp"
        exported = config.read_text()
        # Pointers of 64 bits make the learner's tables larger.
        longer = re.sub(r"(arena_bytes = \d+)", r"\1 + 65536", exported)
        config.write_text(re.sub(r"(\d+),(\s*nullptr, 0,)", r"\1 + 65536,\2", longer))
        sources = sorted(p for part in ("core", "common", "learner", "port", "app")
                         for p in (out / part).rglob("*.cpp"))  # fmt: skip
        succeed(
            *("g++", *FLAGS, f"-DHAS_CHOSEN_pmt_uart={own_line}", f"-I{FAKES}", "-I."),
            *(*sources, FAKES / "zephyr.cpp", "model/image.S", "-Wl,-z,noexecstack", "-o", "fw"),
            folder=out,
        )
        config.write_text(exported)
    return folder


class Line:
    """The UART of a program."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(data)

    def readline(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().decode()


@contextmanager
def running(folder, log, *, new_storage=True, fails=""):
    """Run a program; its console, and its sleeps at the end, are added to the log."""
    storage = folder / ("card.img" if folder.name == "card" else "flash.bin")
    if new_storage and folder.name == "flash":
        storage.write_bytes(b"\xff" * FLASH_BYTES)
    elif new_storage:
        storage.write_bytes(bytes(storage.stat().st_size))
    with subprocess.Popen(
        [folder / "fw"],
        cwd=folder,
        env={"FAILS": fails},
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield Line(process)
            log.append(process.communicate(timeout=60)[1].decode())
        finally:
            process.kill()


def noisy(split: str, count: int) -> datasets.Dataset:
    return corruptions.corrupt(datasets.bundled(split).take(count), "impulse_noise", 5, seed=0)


@pytest.mark.parametrize(("states", "line"), [("card", "console"), ("flash", "own")])
def test_it_learns_as_the_host_does_and_sleeps_after_each_step(projects, monkeypatch, states, line):
    log: list[str] = []
    monkeypatch.setattr(
        streaming, "serial_board", lambda port, baud: running(projects / states, log)
    )
    report = stream(projects / states, noisy("train", 24), noisy("test", 5), port="uart", steps=41)
    assert report.different == []
    assert report.replies > 45
    assert report.candidate == "aligned"
    assert report.memory["stack"] == "2000 of 8192"
    slept = re.fullmatch(r"exit: 0\nslept (\d+) ticks, priority 14, line (.*)\n", log[0])
    assert slept is not None
    assert slept[2] == line
    assert int(slept[1]) > 24 * 11  # alignment runs each sample up to each layer


@pytest.mark.parametrize("states", ["card", "flash"])
def test_states_outlive_a_reset(projects, model, states):
    images, log = model.prepare(noisy("train", 24).images), []
    test = model.prepare(noisy("test", 1).images)[0]
    with running(projects / states, log) as line:
        assert line.readline() == "learner: states outlive a reset\n"
        board = Board(line, lambda index: images[index])
        before = board.ask("P", frame=test)
        adapt(board, images)
        assert board.ask("C") == "ok"
        assert board.ask("K") == "ok"
        after, force = board.ask("P", frame=test), board.ask("F")
        assert after != before
        assert force.startswith("in force: aligned, parameters ")
    with running(projects / states, log, new_storage=False) as line:
        board = Board(line, lambda index: images[index])
        assert (board.ask("P", frame=test), board.ask("F")) == (after, force)


def adapt(board: Board, images: np.ndarray) -> None:
    for image in images:
        assert board.ask("O", 0, -1, image) == "ok"
    assert board.ask("B", ALIGN) == "ok"
    assert board.ask("R", number=7) == "ran 7 steps"
    assert board.ask("R").endswith(" steps, done")


@pytest.mark.parametrize(
    ("states", "fails"),
    [("card", "disk_access_write"), ("flash", "flash_area_write"), ("flash", "a worn cell")],
)
def test_a_storage_that_fails_is_told_and_nothing_is_put_in_force(projects, model, states, fails):
    images = model.prepare(noisy("train", 24).images)
    with running(projects / states, [], fails=fails) as line:
        board = Board(line, lambda index: images[index])
        adapt(board, images)
        assert board.ask("C") == "error: the storage of states failed"
        assert board.ask("F") == "in force: original, parameters 00000000"


def test_a_flash_that_writes_larger_units_keeps_no_states(projects):
    with running(projects / "flash", [], fails="flash_area_align") as line:
        assert line.readline().endswith("states are lost at a reset\n")


@pytest.mark.parametrize("fails", ["device_is_ready", "uart_irq_callback_user_data_set"])
def test_a_uart_without_interrupts_ends_the_learner(projects, fails):
    log: list[str] = []
    with running(projects / "card", log, fails=fails):
        pass
    assert log[0].startswith("error: the learner's UART is not ready, or its driver has no interr")
    assert "exit: 1\n" in log[0]


def test_lost_bytes_damage_one_request_alone(projects, model):
    """After a second without a byte; else the next request would be taken for the rest."""
    test = model.prepare(noisy("test", 1).images)[0]
    request = b"\xa5P\0\0\0\0\0\0" + test.tobytes()
    whole = request + _core.crc32(request).to_bytes(4, "little")
    with running(projects / "card", []) as line:
        board = Board(line, lambda index: test)
        expected = board.ask("P", frame=test)
        for cut in (1, 5, 8, 400, len(whole) - 1):
            line.write(whole[:cut])
            assert board.reply() == "error: the request is damaged"
            assert board.ask("P", frame=test) == expected
        line.write(whole[:300] + whole[301:])
        assert board.reply() == "error: the request is damaged"
        line.write(b"\0" * 3000)  # more than the queue holds
        assert board.ask("P", frame=test) == expected


def test_a_frame_that_loses_a_byte_is_asked_for_again(projects, model):
    images, asked = model.prepare(noisy("train", 24).images), []

    def frame(index: int) -> np.ndarray:
        asked.append(index)
        return images[index][:-1] if len(asked) == 3 else images[index]

    with running(projects / "flash", []) as line:
        adapt(Board(line, frame), images)
    assert asked[2] == asked[3]


def files_of(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


def test_the_files(model, tmp_path):
    out = tmp_path / "fw"
    arguments = {"target": "generic", "format": "zephyr", "samples": 24, "out": out}
    report = export_learner(model, **arguments)
    settings = (out / "prj.conf").read_text().splitlines()
    assert {"CONFIG_UART_INTERRUPT_DRIVEN=y", "CONFIG_FPU_SHARING=y", "CONFIG_SDHC=y"} <= set(
        settings
    )
    assert {"learner/service.cpp", "port/console.cpp", "zephyr/module.yml", "learner.json"} <= (
        files_of(out)
    )
    assert not {"Makefile", "port/flash_states.cpp", "board/generic/port_host.cpp"} & files_of(out)
    assert "constexpr size_t stack_bytes = 8192;" in (out / "model" / "config.hpp").read_text()
    text = str(report)
    assert "\nstack                                   8,192\n" in text
    assert "at most" not in text
    assert text.endswith(
        f"next: west build -b BOARD {out} && west flash, then pmt stream {out} --port PORT "
        "--data DIR"
    )
    export_learner(model, **arguments, states="flash")
    assert {"port/flash_states.cpp", "port/flash_states.hpp"} <= files_of(out)
    settings = (out / "prj.conf").read_text().splitlines()
    assert {"CONFIG_FLASH=y", "CONFIG_FLASH_MAP=y"} <= set(settings)
    assert "CONFIG_SDHC=y" not in settings
    readme = (out / "README.md").read_text()
    assert "- States: the halves of the tree's partition `storage_partition`, which" in readme
    assert "remove `CONFIG_MPU_ALLOW_FLASH_WRITE` from" in readme
    assert "CONFIG_SDHC" not in readme
    with pytest.raises(ValueError, match="generic is not emulated: flash the program, and give i"):
        stream(out, None, noisy("test", 1))


def test_the_port_compiles_for_a_cortex_m(projects):
    need_firmware_tools()
    for states in ("card", "flash"):
        out = projects / states
        for source in ("app/main.cpp", *(p.relative_to(out) for p in (out / "port").glob("*.cpp"))):
            succeed(
                *(COMPILER, *FLAGS, *CORTEX_M7, f"-I{FAKES}", "-I.", "-fsyntax-only", source),
                folder=out,
            )


def test_a_tree_without_a_partition_is_an_error_of_the_compiler(projects):
    need_tools("g++", packages="g++")
    done = subprocess.run(
        ["g++", *FLAGS, "-DPARTITION_BYTES=0", f"-I{FAKES}", "-I.", "-c", "port/flash_states.cpp"],
        cwd=projects / "flash",
        capture_output=True,
        text=True,
        check=False,
    )
    assert "the board's tree has no storage_partition: add one, or export with" in done.stderr


def test_an_export_of_another_system_keeps_no_main_of_the_first(model, tmp_path):
    """That of a board would run on the 1 KB that Zephyr gives to main()."""
    out = tmp_path / "fw"
    main_file = out / "app" / "main.cpp"
    zephyr, board = ({"target": "generic", "format": "zephyr"}, {"target": "qemu-mps2-an500"})
    export_learner(model, out=out, **board)
    export_learner(model, out=out, **zephyr)
    thread = main_file.read_text()
    assert "K_THREAD_DEFINE(pmt_learner, pmt::exported::stack_bytes, learn," in thread
    export_learner(model, out=out, **board)
    assert "int main() {" in main_file.read_text()
    main_file.write_text(main_file.read_text() + "// mine\n")
    with pytest.raises(
        ValueError, match=r"keeps a changed app/main.cpp, .* of another --format \("
    ):
        export_learner(model, out=out, **zephyr)
    main_file.write_text(thread + "// mine\n")
    export_learner(model, out=out, **zephyr)
    assert main_file.read_text().endswith("// mine\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("generic --format arduino", "--format='arduino' has no port for a learner: take make, or"),
        (
            "qemu-mps2-an500 --format zephyr",
            "--format='zephyr' brings its own start-up code: take --target generic, not qemu-mps2",
        ),
        ("generic", "--target='generic' has no serial line that a learner could read .* zephyr"),
        ("generic --format zephyr --ram 64000", r"the learner takes [\d,]+ bytes of RAM, and ther"),
    ],
)
def test_refusals(tmp_path, capsys, arguments, message):
    out = str(tmp_path / "out")
    command = ["export", "fashion_mnist_dscnn", "--learner", "--out", out, "--target"]
    assert main([*command, *arguments.split()]) == 2
    assert re.match(f"pmt: error: {message}", capsys.readouterr().err)


def test_a_program_that_only_predicts_needs_no_storage(tmp_path):
    out = tmp_path / "fw"
    command = ["export", "fashion_mnist_dscnn", "--inference", "--target", "generic"]
    assert main([*command, "--format", "zephyr", "--out", str(out)]) == 0
    assert (out / "prj.conf").read_text().splitlines()[-1] == "CONFIG_DISK_ACCESS=y"
    assert "States" not in (out / "README.md").read_text()
