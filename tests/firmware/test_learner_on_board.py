"""A board that learns by itself: emulated, over its UART, byte for byte the learner of the host."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from firmware_tools import (
    COMPILER,
    CORTEX_M7,
    EMULATOR,
    emulation,
    make,
    need_firmware_tools,
    small_export,
    succeed,
)
from networks import network_with_statistics

import pmt
from pmt import _core, corruptions, datasets
from pmt.cli.program import main
from pmt.firmware.board.memory import linked_sizes
from pmt.firmware.export import export_learner
from pmt.firmware.export.learner import FIXED
from pmt.firmware.stream import Board, StreamReport, emulated_board, stream

ROOT = Path(__file__).parents[2]
TARGET, LIKE = "qemu-mps2-an500", "stm32f746g-disco"
ALIGN = _core.LEARNER_PHASES.index("align")


@pytest.fixture(scope="module")
def model():
    return network_with_statistics()


def noisy(split: str, count: int) -> datasets.Dataset:
    return corruptions.corrupt(datasets.bundled(split).take(count), "impulse_noise", 5, seed=0)


@pytest.fixture(scope="module")
def project(model, tmp_path_factory):
    """A project whose frames wait on the host, so that it is small."""
    need_firmware_tools(EMULATOR)
    out = tmp_path_factory.mktemp("learner") / "fw"
    options = pmt.preset("default", batch=4, queries=4, epochs=1)
    room = {"samples": 60, "frames": "host", "options": options, "select": ["B1", "B2+head"]}
    export_learner(model, target=TARGET, like=LIKE, out=out, **room)
    return out


@pytest.mark.parametrize("labels", [None, 30, 0])
def test_a_board_learns_within_the_f746_as_the_host_does(project, labels):
    report = stream(project, noisy("train", 60), noisy("test", 12), labels=labels, pipe=True)
    assert report.different == []
    assert report.samples == 60
    if labels is None:
        assert set(report.scores) == {"original", "aligned", "head", "head_alone", "trained"}
        assert list(report.trials) == ["B1", "B2+head"]
        assert report.to_json()["selected"] in report.trials
    elif labels:
        assert {"original", "aligned", "head"} <= set(report.scores)
    else:
        assert (report.candidate, report.scores, report.trials) == ("aligned", {}, {})
    used, size = map(int, report.memory["arena"].split(" of "))
    assert 0 <= size - used < (16 if labels is None else size)  # the head takes most
    used, size = map(int, report.memory["stack"].split(" of "))
    assert 512 <= used < size == FIXED.stack


def test_live_images_over_the_uart(model, tmp_path):
    need_firmware_tools(EMULATOR)
    out = tmp_path / "fw"
    export = export_learner(model, target=TARGET, like=LIKE, out=out, samples=24, held_out=5)
    assert export.frames == "board"
    report = stream(out, noisy("train", 24), noisy("test", 5), steps=41)
    assert report.different == []
    assert report.replies > 45
    assert make(out).returncode == 0
    linked = linked_sizes(out / "build" / "fw.elf")
    assert 0 <= export.ram_used - linked.ram < 512
    flash = (out / "build" / "fw.bin").stat().st_size
    assert 0 <= export.flash_used - flash < 12_492


@pytest.mark.parametrize(("keeps", "reliability"), [(False, False), (True, False), (True, True)])
def test_a_board_aligns_weights_as_the_host_does(model, tmp_path, keeps, reliability):
    need_firmware_tools(EMULATOR)
    out = tmp_path / "fw"
    options = {"samples": 24, "windows": True, "keeps_activations": keeps, "frames": "host"}
    export = export_learner(
        model, target=TARGET, like=LIKE, out=out, reliability=reliability, **options
    )
    assert export.sizes.align > export.sizes.head
    report = stream(out, noisy("train", 24), noisy("test", 5), labels=0, steps=41, pipe=True)
    assert (report.candidate, report.different) == ("aligned", [])
    used, size = map(int, report.memory["arena"].split(" of "))
    assert 0 <= size - used < 200  # the list of the samples is shorter
    assert 0 <= export.ram_used - linked_sizes(out / "build" / "fw.elf").ram < 512
    assert make(out).returncode == 0
    flash = (out / "build" / "fw.bin").stat().st_size
    assert 0 <= export.flash_used - flash < 12_492


def test_activations_that_external_memory_keeps(model, tmp_path):
    need_firmware_tools(EMULATOR)
    out = tmp_path / "fw"
    export = export_learner(
        model, target=TARGET, like=LIKE, out=out, samples=30, frames="host", keeps_activations=True
    )
    assert export.memory_table().splitlines()[-1].split() == [
        *["external:", "activations"],
        "282,240",
    ]
    frames = model.prepare(noisy("train", 30).images)
    sent: list[int] = []

    def frame(index: int) -> np.ndarray:
        sent.append(index)
        return frames[index]

    with emulated_board(out, pipe=True) as line:
        board = Board(line, frame)
        for each in frames:
            assert board.ask("O", 0, -1, each) == "ok"
        assert board.ask("B", ALIGN) == "ok"
        while not board.ask("R", number=37).endswith(", done"):
            board.ask("P", frame=frames[0])
        assert sorted(sent) == sorted(2 * list(range(30)))  # for the first layer and the second
        assert board.ask("C") == "ok"
        learner = pmt.Learner(model, samples=30)
        learner.observe(noisy("train", 30).images)
        assert learner.learn("align") == "aligned"
        learner.commit()
        assert board.ask("F").endswith(f"aligned, on trial, parameters {learner.checksum:08x}")
    assert stream(out, noisy("train", 30), noisy("test", 2), steps=97, pipe=True).different == []


def test_a_board_that_only_predicts(model, tmp_path):
    need_firmware_tools(EMULATOR)
    out = tmp_path / "fw"
    export = export_learner(model, target=TARGET, like=LIKE, out=out, samples=0)
    assert (export.sizes.needed, export.statistics_bytes) == (12256, 0)
    assert str(export).startswith(f"{out}: a program for {TARGET} that only predicts\n")
    assert (out / "README.md").read_text().startswith("# Inference on QEMU's mps2-an500")
    with pytest.raises(FileExistsError, match="is the export of a learner or of inference: choose"):
        small_export(out)
    other = datasets.Dataset.from_arrays(noisy("test", 8).images, [10] * 8, name="other")
    with pytest.raises(ValueError, match="data set 'other' has label 10, the model has 10 cla"):
        stream(out, None, other, pipe=True)
    report = stream(out, None, noisy("test", 8), pipe=True)
    assert (report.samples, report.replies, report.different) == (0, 8, [])
    assert str(report).startswith(f"test images: {report.before:.1%} of 8\n")
    shown = succeed("arm-none-eabi-nm", "-C", out / "build" / "fw.elf")
    for part in ("HeadPhase::step", "ChannelPhase::step", "StateSlots::", "dct_shrinkage"):
        assert part not in shown
    assert make(out).returncode == 0
    flash = (out / "build" / "fw.bin").stat().st_size
    assert 0 <= export.flash_used - flash < 6_000
    assert flash - export.model_bytes < 42_000
    with pytest.raises(ValueError, match="options= cannot be given with samples=0"):
        export_learner(model, target=TARGET, out=out, samples=0, options=pmt.preset("default"))


def test_one_output_on_an_emulated_board_of_ones_own(tmp_path, capsys):
    need_firmware_tools(EMULATOR)
    (tmp_path / "small.toml").write_text(
        f'board = "{TARGET}"\n[ram]\norigin = 0x2000_0000\nbytes = 0x4_0000\n'
    )
    model, out = pmt.load("fashion_mnist_dscnn", classes=1), tmp_path / "fw"
    head = model.layers[-1].index
    signs = np.where(np.arange(128) % 2, 1, -1).astype(np.int8).reshape(model.weights(head).shape)
    model.core.set_parameters(head, signs, model.bias(head))
    model.save(tmp_path / "one.pmt")
    exported = ["export", str(tmp_path / "one.pmt"), "--inference", "--target"]
    assert main([*exported, str(tmp_path / "small.toml"), "--out", str(out)]) == 0
    capsys.readouterr()
    images = datasets.bundled("test").images[:6]
    test = datasets.Dataset.from_arrays(images, model.predict(images))
    report = stream(out, None, test, pipe=True)
    assert (report.before, report.replies, report.different) == (1.0, 6, [])


def test_states_in_the_flash_of_an_stm32f746_stand_above_the_program(model, tmp_path):
    need_firmware_tools()
    out, disco = tmp_path / "fw", "stm32f746g-disco"
    export = export_learner(model, target=disco, out=out, samples=24, states="flash", flash="1M")
    assert (export.states, export.flash_bytes) == ("flash", 512 * 1024)
    assert make(out).returncode == 0
    symbols = succeed("arm-none-eabi-nm", "-C", out / "build" / "fw.elf")
    assert re.search("^00080000 A flash_bytes$", symbols, re.M)
    assert "pmt::stm32f7::open_flash_states(" in symbols
    assert "CardSlots" not in symbols
    for target in (TARGET, "stm32h7b3i-dk"):
        with pytest.raises(ValueError, match=f"pmt can write above .*, and {target} has none"):
            export_learner(model, target=target, out=tmp_path / "no", states="flash")
    with pytest.raises(ValueError, match="states='ram' must be one of card, flash"):
        export_learner(model, target=disco, out=tmp_path / "no", states="ram")
    small = tmp_path / "small.toml"
    small.write_text(
        f'board = "{disco}"\nchip = "stm32f746neh6"\nsupply = "ldo"\ncrystal_hz = 0\n'
        "flash = {origin = 0x0800_0000, bytes = 0x8_0000}\n"
    )
    with pytest.raises(ValueError, match="and small has none: take states='card'"):
        export_learner(model, target=str(small), out=tmp_path / "no", states="flash")


@pytest.mark.parametrize("frames", ["board", "host"])
def test_a_board_filters_and_resamples_what_its_sensor_sees(model, tmp_path, frames):
    need_firmware_tools(EMULATOR)
    filters = (pmt.Filter("switching_median", 32), pmt.Filter("dct_shrinkage", 20, "square_root"))
    staged = model.with_input_stage(pmt.InputStage((44, 36), filters))
    out = tmp_path / "fw"
    export = export_learner(staged, target=TARGET, like=LIKE, out=out, samples=30, frames=frames)
    data, test = (noisy(*part).resize(44, 36) for part in (("train", 30), ("test", 5)))
    report = stream(out, data, test, steps=97, pipe=True)
    assert report.different == []
    assert report.replies > 40
    assert report.candidate != "original"
    assert export.sizes.phases()["predict"] > 28 * 28 + 44 * 36


@pytest.mark.parametrize("frames", ["board", "host"])
def test_a_board_chooses_filters_by_itself_from_frames_that_it_keeps(model, tmp_path, frames):
    need_firmware_tools(EMULATOR)
    small = model.with_input_stage(pmt.InputStage((20, 24)))
    out = tmp_path / "fw"
    export = export_learner(
        small, target=TARGET, like=LIKE, out=out, choose_input=True, samples=30, frames=frames
    )
    data, test = (noisy(*part).resize(20, 24) for part in (("train", 30), ("test", 5)))
    report = stream(out, data, test, labels=0, steps=1997, pipe=True)
    assert report.different == []
    assert report.candidate == "aligned"
    assert report.after > report.before
    assert report.memory["arena"].endswith(f" of {export.arena_bytes}")
    assert export.frame_bytes == (30 * 20 * 24 if frames == "board" else 0)
    used = export.ram_used - linked_sizes(out / "build" / "fw.elf").ram
    assert 0 <= used < 512
    assert "\nfilters are chosen on 30 frames or more that are not held out, and up to 7 of 30" in (
        str(export)
    )


def test_an_export_says_that_nothing_is_aligned(tmp_path):
    plain = pmt.load("fashion_mnist_dscnn")
    export = export_learner(plain, target="qemu-mps2-an500", out=tmp_path / "fw")
    assert "\nnot aligned: the model holds no statistics of clean images; `pmt stat" in str(export)


@pytest.mark.parametrize(
    ("board", "layers"),
    [("stm32f746g-disco", None), ("stm32h7b3i-dk", None), ("stm32h7b3i-dk", "all")],
)
def test_the_programs_of_the_st_boards_are_no_larger_than_said(model, tmp_path, board, layers):
    need_firmware_tools()
    out = tmp_path / "fw"
    options = layers and pmt.preset("default", layers=layers, epochs=1)
    export = export_learner(model, target=board, out=out, samples=24, options=options)
    built = make(out)
    assert built.returncode == 0, built.stdout
    assert 0 <= export.ram_used - linked_sizes(out / "build" / "fw.elf").ram < 512
    flash = (out / "build" / "fw.bin").stat().st_size
    assert 0 <= export.flash_used - flash < 12_492


def test_damaged_requests_change_nothing_and_states_outlive_a_reset(project, model):
    images, test = noisy("train", 60), model.prepare(noisy("test", 1).images)[0]
    frames = model.prepare(images.images)
    with emulated_board(project, pipe=True) as line:
        board = Board(line, lambda index: frames[index])
        before = board.ask("P", frame=test)
        line.write(b"\x00noise\xa5P\x00\x00\x00\x00\x00\x00" + bytes(test.size) + b"wrong")
        assert board.reply() == "error: the request is damaged"
        line.write(b"\x00" * 7)  # what is not a start is passed over
        assert board.ask("?") == "error: the request is unknown"
        assert board.ask("B", 200).startswith("error: an option has a value outside its range")
        assert board.ask("O", 0, 10, test).startswith("error: a label is outside")
        assert board.ask("O", 77, 0, test).startswith("error: an option has a value")
        assert board.ask("B", ALIGN) == "error: too few samples or classes for this phase"
        assert board.ask("C").startswith("error: the learner's state does not allow this call")
        for frame in frames:
            assert board.ask("O", 2, -1, frame) == "ok"
        assert board.ask("O", 2, -1, test) == "error: there is no room for another sample"
        assert board.ask("B", ALIGN) == "ok"
        assert re.fullmatch(r"ran \d+ steps", board.ask("R", number=100))
        assert board.ask("P", frame=test) == before
        assert board.ask("X") == "ok"
        assert board.ask("B", ALIGN) == "ok"
        assert board.ask("R").endswith(", done")
        assert board.ask("C") == "ok"
        trial = board.ask("F")
        assert trial.startswith("in force: aligned, on trial, parameters ")
        after = board.ask("P", frame=test)
        assert after != before
    with emulated_board(project, pipe=True, new_card=False) as line:
        board = Board(line, lambda index: frames[index])
        assert board.ask("F") == trial
        assert board.ask("P", frame=test) == after
        assert board.ask("Z") == "ok"
        assert board.ask("P", frame=test) == before
        assert board.ask("F") == "in force: original, parameters 00000000"


def test_frames_that_the_line_damages_end_the_phase(project, model):
    frames = model.prepare(noisy("train", 8).images)
    sent = 0

    def worse(index: int) -> np.ndarray:
        nonlocal sent
        sent += 1
        return frames[index] if sent < 30 else frames[index] ^ 1

    with emulated_board(project, pipe=True) as line:
        board = Board(line, worse)
        before = board.ask("P", frame=frames[0])
        for frame in frames:
            assert board.ask("O", 0, -1, frame) == "ok"
        assert board.ask("B", ALIGN) == "ok"
        assert board.ask("R").startswith("error: the frame store failed, or a frame in it has")
        assert board.ask("F") == "in force: original, parameters 00000000"
        assert board.ask("P", frame=frames[0]) == before


def test_the_table_of_a_learner_that_does_not_fit_keeps_its_lines(tmp_path, capsys):
    out = str(tmp_path / "out")
    command = ["export", "fashion_mnist_dscnn", "--learner", "--target", TARGET, "--out", out]
    assert main([*command, "--ram", "64000"]) == 2
    told, blank, titles, *rows = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"pmt: error: the learner takes [\d,]+ bytes of RAM, .*; take .*", told)
    assert (blank, titles.split()) == ("", ["memory", "bytes"])
    assert rows[0].startswith("persistent   ")
    assert re.fullmatch(r"flash +[\d,]+", rows[-1])


def test_refusals(model, tmp_path, capsys):
    with pytest.raises(ValueError, match=r"has no serial line that a learner could read"):
        export_learner(model, target="generic", out=tmp_path / "a")
    with pytest.raises(
        ValueError, match=r"the learner takes [\d,]+ bytes of RAM, and there are 64,000"
    ):
        export_learner(model, target=TARGET, out=tmp_path / "b", ram=64000)
    with pytest.raises(ValueError, match="frames='here' must be one of board, host"):
        export_learner(model, target=TARGET, out=tmp_path / "c", frames="here")
    for target, samples, rule in (
        ("stm32f746g-disco", 20, r"keeps_activations: 'stm32f746g-disco' has no external memory"),
        (TARGET, 1784, r"take 16,783,872 bytes of external memory, and '[^']+' has 16,777,216"),
    ):
        with pytest.raises(ValueError, match=rule):
            export_learner(
                model, target=target, out=tmp_path / "c", samples=samples, keeps_activations=True
            )
    assert list(tmp_path.iterdir()) == []
    model.save(tmp_path / "model.pmt")
    command = ["export", str(tmp_path / "model.pmt"), "--learner", "--out", str(tmp_path / "d")]
    assert main([*command, "--target", TARGET, "--steps", "3"]) == 2
    assert capsys.readouterr().err == "pmt: error: --steps does not go with --learner\n"
    assert main([*command, "--target", TARGET, "--from", "pmt.lock"]) == 2
    assert capsys.readouterr().err == "pmt: error: --from does not go with --learner\n"
    assert main([*command, "--target", TARGET, "--preset", "none"]) == 2
    assert "--preset says how layers are trained, and none are named" in capsys.readouterr().err
    assert main(command) == 2
    assert "--target is missing" in capsys.readouterr().err
    usual = ["export", "fashion_mnist_dscnn", "--target", TARGET, "--out", str(tmp_path / "d")]
    for option in ("--choose-input", "--keep-activations", "--windows", "--reliability"):
        assert main([*usual, option]) == 2
        assert capsys.readouterr().err == f"pmt: error: {option} needs --learner\n"
    assert main(["stream", str(tmp_path), "--data", "bundled"]) == 2
    assert "is no learner's project: it has no readable learner.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--samples 20 --held-out 30", "--held-out=30 must be 0..20, the number of --samples; lo"),
        ("--samples 2000000", "--samples=2000000 must be 0..1048576"),
        (
            "--states flash",
            "--states='flash' needs a chip whose flash pmt can write .*: take --sta",
        ),
        ("--windows", "--windows aligns windows, and the model holds no statistics of those"),
        ("--reliability", "--reliability goes by windows, which tell how much noise images hold: "),
        ("--keep-activations", "--keep-activations keeps what alignment reads, and the model"),
        ("--choose-input", "--choose-input aligns behind the filters, and the model holds no"),
        ("--choose-input --samples 9", "--samples=9: .* on 30 or more; .* leave out --choose-inp"),
        ("--ram much", "--ram='much' must be a number of bytes"),
        ("--as some", "--as='some' is unknown; choose one of generic, "),
    ],
)
def test_errors_name_options_as_the_command_line_does(tmp_path, capsys, arguments, message):
    out = str(tmp_path / "out")
    command = ["export", "fashion_mnist_dscnn", "--learner", "--target", TARGET, "--out", out]
    assert main([*command, *arguments.split()]) == 2
    assert re.match(f"pmt: error: {message}", capsys.readouterr().err)


def test_a_board_and_its_host_refuse_the_same_phase(project):
    report = stream(project, noisy("train", 1), noisy("test", 1), pipe=True)
    assert (report.candidate, report.different) == ("original", [])


def test_a_stream_to_an_input_stage_takes_pixels(model, tmp_path):
    staged = model.with_input_stage(pmt.InputStage((28, 28), (pmt.Filter("sharpening", 4),)))
    out = tmp_path / "fw"
    export_learner(staged, target=TARGET, out=out, samples=20)
    test = noisy("test", 2)
    prepared = datasets.Dataset.from_arrays(model.prepare(test.images), test.labels)
    with pytest.raises(TypeError, match="test holds int8 inputs, and the board's input stage take"):
        stream(out, None, prepared)


# Names that the programs of the guide need: model, statistics, and a sensor of frames in a row.
SENSOR = """
#include <cstddef>
#include <cstdint>

#include "common/board.hpp"

asm(R"(
  .section .rodata.guide, "a"
  .balign 16
  .global model_pmt, clean_bin, clean, frames_bin, model_bytes
model_pmt: .incbin "model/model.pmt"
model_end: .balign 16
clean_bin:
clean: .incbin "model/clean.bin"
frames_bin: .incbin "frames.bin"
  .balign 4
model_bytes: .word model_end - model_pmt
)");
extern const uint8_t frames_bin[];
SENSOR_LINKAGE const uint8_t* sensor_frame() {
  static size_t taken = 0;
  pmt::board::feed_watchdog();
  return frames_bin + 784 * taken++;
}
"""


@pytest.mark.parametrize("language", ["c", "cpp"])
def test_the_programs_of_the_guide_adapt_a_board(model, project, tmp_path, language):
    guide = (ROOT / "docs" / "guides" / "learner.md").read_text(encoding="utf-8")
    programs = re.findall(r"```(c|cpp)\n(.*?)```", guide, re.DOTALL)
    assert [language for language, _ in programs] == ["c", "cpp", "cpp"]
    assert max(len(program.splitlines()) for _, program in programs) <= 40
    assert re.findall(r"frames\[64\]\[(\d+)\]", guide) == ["784", "784"]
    assert re.findall(r"clean_count = (\d+)", guide) == ["672", "672"]
    program = programs[0 if language == "c" else -1][1]
    out = shutil.copytree(project, tmp_path / "fw")
    (out / "app" / "main.cpp").unlink()
    (out / "app" / f"main.{language}").write_text(program)
    linkage = 'extern "C"' if language == "c" else ""
    (out / "app" / "sensor.cpp").write_text(SENSOR.replace("SENSOR_LINKAGE", linkage))
    frames = model.prepare(noisy("train", 64).images)
    statuses = []
    for seen in (frames, np.zeros_like(frames)):
        (out / "frames.bin").write_bytes(seen.tobytes())
        (out / "app" / "sensor.cpp").touch()
        built = make(out)
        assert built.returncode == 0, built.stdout
        run = subprocess.run(emulation(out / "build" / "fw.elf"), timeout=60, check=False)
        statuses.append(run.returncode == 0)
    assert statuses == [True, False]  # of equal frames there are too few


def test_the_epochs_of_the_guide_compile(project, tmp_path):
    guide = (ROOT / "docs" / "guides" / "learner.md").read_text(encoding="utf-8")
    source = tmp_path / "epochs.cpp"
    source.write_text(re.findall(r"```cpp\n(.*?)```", guide, re.DOTALL)[0])
    flags = ("-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror")
    succeed(
        *(COMPILER, *flags, *CORTEX_M7, f"-I{project}", "-c", source, "-o", tmp_path / "epochs.o")
    )


def test_a_learner_is_not_run_like_a_training(project):
    run = make(project, "qemu")
    assert run.returncode != 0
    assert "a learner waits for requests, and trains nothing by itself: pmt stream ." in run.stdout


def test_a_report_without_held_out_samples_has_no_table():
    report = StreamReport(24, 100, 0.5, 0.75, "aligned", {}, 30, 1500)
    assert str(report) == (
        "no sample with a label is held out\n\n"
        "chosen: aligned\n"
        "learning: 1.5 s by the board's clock\n"
        "test images: 50.0% -> 75.0% of 100\n"
        "verify: all 30 replies equal the host's, byte for byte"
    )


def test_a_report_says_which_block_was_trained_and_why_the_least_loss_may_not_be_chosen():
    scores = {"original": (1.0, 0.5), "aligned": (0.7, 0.75), "head": (0.6, 0.75)}
    trials = {"B1": (0.9, 0.5), "B2+head": (0.8, 0.625)}
    report = StreamReport(24, 100, 0.5, 0.75, "head", scores, 30, 1500, trials=trials)
    assert str(report).splitlines()[4:8] == [
        "block B2+head: after an epoch B1 0.900 50.0%, B2+head 0.800 62.5%",
        "",
        "chosen: head",
        "learning: 1.5 s by the board's clock",
    ]
    page = ": docs/guides/learner.md#what-it-does"
    two = "it must beat the original by 2 standard errors or more"
    for least, candidate, rule in (
        ("head", "aligned", f"{two}, and be no less accurate"),
        ("head_alone", "aligned", f"{two}, and others by one, and be no less accurate"),
        ("aligned", "original", "alignment is judged on all labeled samples"),
    ):
        report = replace(report, scores={**scores, least: (0.1, 0.5)}, candidate=candidate)
        told = f"chosen: {candidate}\n{least} has the least loss, but {rule}{page}\n"
        assert told in str(report)
