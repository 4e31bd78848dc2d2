"""The exported folder, without the tools that build it."""

import dataclasses
import filecmp
import json
import re
from pathlib import Path
from typing import Any

import pytest
from firmware_tools import TARGET, random_dataset, small_export
from networks import residual_network

import pmt
from pmt._util.native_files import core_folder
from pmt.datasets import Dataset
from pmt.firmware.export import ExportReport, export, targets
from pmt.firmware.export.linked import LINKED
from pmt.firmware.export.target import parse_size
from pmt.firmware.export.task import make_task
from pmt.train.run.keep_best import part

OPTIONS = pmt.preset("default", batch=3, queries=4, preparation="align")


def write(out: Path, **arguments: Any) -> ExportReport:
    return small_export(out, **{"options": OPTIONS, **arguments})


def test_the_core_is_copied_unchanged_but_for_the_lists_of_its_parts(tmp_path):
    write(tmp_path / "fw")
    core = core_folder()
    files = [str(p.relative_to(core)) for p in core.rglob("*") if p.suffix in (".cpp", ".hpp")]
    assert len(files) > 30
    same, different, missing = filecmp.cmpfiles(core, tmp_path / "fw" / "core", files, False)
    lists = {path for path in core.parent.glob(f"{LINKED}/*") if path.name != "parts.hpp"}
    assert {core / name for name in different} == lists
    assert (len(same), len(lists), missing) == (len(files) - 11, 11, [])


def test_the_folder_is_complete_and_names_no_other_place(tmp_path):
    write(tmp_path / "fw")
    names = {p.relative_to(tmp_path / "fw").as_posix() for p in (tmp_path / "fw").rglob("*")}
    assert names >= {
        "Makefile", "README.md", "app/main.cpp", "card.img", "expected.json", "export.json",
        f"board/{TARGET}/board.cpp", f"board/{TARGET}/link.ld", "drivers/cortex_m/startup.cpp",
        "CMakeLists.txt", "CMakePresets.json", "toolchain.cmake", "common/board.hpp",
        "core/train/trainer.hpp", "model/config.hpp", "model/model.pmt",
    }  # fmt: skip
    root = str(core_folder().parents[1])
    for path in (tmp_path / "fw").rglob("*"):
        if path.is_file() and path.suffix not in (".img", ".pmt", ".json"):
            text = path.read_text()
            assert root not in text
            assert not re.search(r"@[A-Z_]+@", text), path
    assert [p.name for p in tmp_path.iterdir()] == ["fw"]


def test_equal_exports_are_equal(tmp_path):
    for name in ("a", "b"):
        write(tmp_path / name)
    for name in ("card.img", "model/model.pmt", "model/config.hpp", "expected.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_the_model_itself_is_not_trained(tmp_path):
    model = residual_network()
    before = model.image()
    export(
        model, target=TARGET, out=tmp_path / "fw", dataset=random_dataset(model, 9), options=OPTIONS
    )
    assert model.image() == before
    assert (tmp_path / "fw" / "model" / "model.pmt").read_bytes() == before


def test_a_run_by_an_estimator_of_ones_own_is_a_model_to_begin_with(tmp_path):
    model = residual_network()
    data = random_dataset(model, 9)
    own = pmt.ZOTrainer(OPTIONS, epochs=1, estimator=lambda *_: {})
    own.fit(model, data, out=tmp_path / "run", progress=False)
    task = make_task(tmp_path / "run", dataset=data, steps=2, batch=3)
    assert [step.step for step in task.steps] == [0, 1]
    assert task.options.queries == pmt.TrainingOptions().queries


@pytest.mark.parametrize(("images", "trained"), [(20, 16), (17, 17)])
def test_a_run_goes_on_with_the_images_that_it_trains_on(tmp_path, images, trained):
    model = residual_network()
    data = random_dataset(model, images)
    trainer = pmt.ZOTrainer(OPTIONS, epochs=1, batch=1, keep_best=True)
    trainer.fit(model, data, out=tmp_path / "run", progress=False)
    task = make_task(tmp_path / "run", dataset=data, steps=trained, batch=1)
    assert len(task.dataset) == trained
    steps = trainer.schedule_on(model, data)
    kept = part(data, images - trained, seed=1)[0] if trained < images else data
    for step in task.steps:
        (sample,) = step.samples
        (index,) = steps.indices(step.step)
        assert (task.images[sample] == model.prepare(kept.images[[index]])[0]).all()
    # From images that are not the run's none are left out.
    other = data.shuffled(7)
    task = make_task(tmp_path / "run", dataset=other, steps=2, batch=1)
    assert len(task.dataset) == images


def test_a_run_goes_on_with_a_third_of_the_rate_after_an_epoch_that_was_reverted(tmp_path):
    model = residual_network()
    right = random_dataset(model, 40, 5)
    right = dataclasses.replace(right, labels=model.predict(right.images))
    options = {"keep_best": True, "learning_rate": 30.0, "final_learning_rate": 1.0}
    trainer = pmt.ZOTrainer(OPTIONS, layers="head", epochs=3, preparation="none", **options)

    def stop(step: int, _record: dict[str, Any]) -> None:
        if step == 5:
            raise KeyboardInterrupt

    data, run = random_dataset(model, 12), tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        trainer.fit(model, data, held_out=right, out=run, progress=stop)
    rates = [step.learning_rate for step in make_task(run, dataset=data, steps=2).steps]
    assert rates == [10.0, 10.0]
    task = make_task(run, dataset=data, steps=2, learning_rates=[30.0, 30.0])
    assert [step.learning_rate for step in task.steps] == [30.0, 30.0]


def test_budgets_reach_the_linker_script(tmp_path):
    report = write(tmp_path / "fw", ram="256K", flash="1M", stack="4K")
    script = (tmp_path / "fw" / "board" / TARGET / "link.ld").read_text()
    assert "FLASH (rx) : ORIGIN = 0x00000000, LENGTH = 1048576" in script
    assert "RAM (rwx)  : ORIGIN = 0x20000000, LENGTH = 262144" in script
    assert ". += 4096;" in script
    assert (report.ram_bytes, report.flash_bytes, report.stack_bytes) == (262144, 1048576, 4096)


def test_the_report_prints_the_use_of_memory(tmp_path):
    report = write(tmp_path / "fw", layers="B3,head", ram="64K", flash="128K")
    lines = str(report).splitlines()
    assert lines[0] == f"{tmp_path / 'fw'}: {TARGET}, 5 steps of 3 samples, 4 queries, 2 layers"
    assert lines[1] == "| what               | where |     bytes | of budget |"
    assert lines[3] == "| - trained weights  | arena |       656 |      1.0% |"
    assert lines[9] == "| stack              | RAM   |     4,096 |      6.2% |"
    assert lines[10] == "| variables, at most | RAM   |     1,856 |      2.8% |"
    assert lines[11] == "| model              | flash |     2,864 |      2.2% |"
    assert lines[12] == "| code, at most      | flash |    74,964 |     57.2% |"
    assert lines[13] == (
        f"fits: {report.arena_bytes + 5952:,} of 65,536 bytes of RAM, 77,828 of 131,072 of flash; "
        "most activations at stem"
    )
    assert lines[14] == "work: 3 million multiply-accumulates, about 5 million instructions"
    assert lines[15] == (
        "time: about 0 s, projected: instructions x 1 cycles per instruction / 200 MHz "
        "(QEMU's speed, roughly)"
    )
    assert lines[16] == f"next: make -C {tmp_path / 'fw'} qemu"
    assert sum(report.arena_parts.values()) == report.arena_bytes
    assert json.loads((tmp_path / "fw" / "export.json").read_text())["layers"] == ["down", "head"]


def test_a_flash_that_only_small_code_fits_is_said(tmp_path):
    report = write(tmp_path / "fw", flash="68K")
    assert report.verdict().startswith("may not link, 8,196 bytes of flash too many at most: ")


def test_a_library_has_neither_variables_nor_code_yet(tmp_path):
    report = write(tmp_path / "fw", target="generic", flash="3K")
    assert (report.variable_bytes, report.code_bytes) == (0, 0)
    assert "at most" not in str(report)
    assert report.verdict().startswith("fits: ")


def test_the_work_is_that_of_the_trainer_and_of_its_streams(tmp_path):
    model = residual_network()
    report = write(tmp_path / "fw", inferences=0)
    # One stream, in which four layers are queried, and run again to count free nodes before these
    # share a gradient.
    stem, expand, depth, project = 13_824, 8_192, 9_216, 8_192
    restarts = 4 * (stem + (stem + expand) + (stem + expand + depth))
    counting = 4 * stem + 3 * expand + 2 * depth + project
    assert report.macs == 5 * (pmt.ZOTrainer(OPTIONS).cost(model).macs + 3 * (restarts + counting))


def test_a_single_sample_is_compared_alone(tmp_path):
    report = write(tmp_path / "fw", batch=1, steps=1)
    assert (report.batch, report.steps) == (1, 1)
    expected = json.loads((tmp_path / "fw" / "expected.json").read_text())
    assert len(expected["activations_crc32"]) == 1


def test_a_long_run_is_announced(tmp_path):
    report = write(tmp_path / "fw")
    told = str(dataclasses.replace(report, seconds=5400.0)).splitlines()[15]
    assert told.startswith("time: about 90 min, projected: ")
    assert told.endswith("; a smaller batch, fewer queries or fewer steps take less")
    assert "take less" not in str(report)


def test_a_later_export_keeps_the_application(tmp_path):
    write(tmp_path / "fw")
    main = tmp_path / "fw" / "app" / "main.cpp"
    main.write_text("// mine\n" + main.read_text())
    (tmp_path / "fw" / "build").mkdir()
    write(tmp_path / "fw", steps=2)
    assert main.read_text().startswith("// mine\n")
    assert not (tmp_path / "fw" / "build").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["fw"]


def test_targets():
    assert targets() == ("generic", "qemu-mps2-an500", "stm32f746g-disco", "stm32h7b3i-dk")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": "stm32"}, "target='stm32' is unknown; choose one of generic, qemu-mps2-an500"),
        ({"steps": 0}, r"steps=0 must be a whole number of steps, 1\.\.100000; a longer training"),
        (
            {"steps": 9_999_999_999},
            r"steps=9999999999 must be a whole number of steps, 1\.\.100000",
        ),
        ({"steps": 2**63}, "steps=9223372036854775808 must be a whole number of steps"),
        ({"steps": "5"}, "steps='5' must be a whole number of steps"),
        ({"save_interval": 2**31}, "save_interval=2147483648 must be a whole number of steps"),
        ({"batch": 10}, "batch=10 is larger than the training set of 9 samples"),
        ({"layers": "B9"}, "'B9' is neither a block"),
        ({"learning_rates": [0.1]}, r"learning_rates=\[0.1\] must be 5 finite numbers"),
        ({"learning_rates": [float("nan")] * 5}, "must be 5 finite numbers"),
        ({"learning_rates": [1e39] * 5}, "must be 5 finite numbers >= 0 that float32 holds"),
        ({"learning_rates": ["0.1"] * 5}, "must be 5 finite numbers >= 0"),
        ({"inferences": 10}, r"inferences=10 must be 0..9"),
        ({"ram": "8X"}, "ram='8X' must be a number of bytes"),
        (
            {"ram": "8K"},
            r"ram=8192 is too small: training needs [0-9]+ bytes \(arena [0-9]+, stack 4096, "
            r"variables 1856 at most\), [0-9]+ too many; take a smaller batch, fewer queries "
            "or fewer layers",
        ),
        ({"ram": "64M"}, "ram=67108864 is more than qemu-mps2-an500 has: 4194304 bytes"),
        (
            {"flash": "50K"},
            r"flash=51200 is too small: the firmware needs at least 52016 bytes \(model 2864, "
            r"code 49152\), 816 too many; take a smaller model",
        ),
        ({"ram": 65537}, "ram=65537 must be a multiple of 1024 bytes: the MPU guards its end"),
        (
            {"like": "stm32f746g-disco", "ram": "512K"},
            "ram=524288 is more than stm32f746g-disco has: 262144 bytes",
        ),
        (
            {"target": "stm32f746g-disco", "like": "stm32h7b3i-dk"},
            "like='stm32h7b3i-dk' has 2097152 bytes of flash, stm32f746g-disco only 1048576",
        ),
        ({"stack": 1025}, "stack=1025 must be a multiple of 8"),
    ],
)
def test_bad_arguments(tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        write(tmp_path / "fw", **arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_data_set_of_other_images_is_refused(tmp_path):
    other = random_dataset(residual_network(size=16), 9)
    with pytest.raises(ValueError, match="images must have shape"):
        write(tmp_path / "fw", dataset=other)


@pytest.mark.parametrize(
    ("text", "size"),
    [("262144", 262144), (1024, 1024), ("256K", 262144), ("1M", 1048576), ("320 KiB", 327680)],
)
def test_sizes(text, size):
    assert parse_size("ram", text) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5M", "1G", "K"])
def test_what_is_no_size(text):
    with pytest.raises(ValueError, match="must be a number of bytes"):
        parse_size("flash", text)


def test_what_no_board_can_score_is_refused(tmp_path):
    expected = (
        "loss='python:mine' is a Python callable, which no board runs; export with "
        "loss='cross_entropy' or another of the core's losses"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        write(tmp_path / "fw", options=OPTIONS.replace(loss="python:mine"))
    data = random_dataset(residual_network(), 9)
    bare = Dataset.unlabeled(data.images, "camera")
    expected = (
        "data set 'camera' has no labels, which loss='cross_entropy' needs; use loss='entropy' or "
        "a callable that needs none, or label the images"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        write(tmp_path / "fw", dataset=bare)
