"""The arm_dsp kernels' assembly, run on an emulated Cortex-M7, and compiled for other cores."""

from __future__ import annotations

from pathlib import Path

import pytest
from firmware_tools import COMPILER, EMULATOR, need_firmware_tools, succeed

from pmt.firmware.export.layout import link_script
from pmt.firmware.export.target import find_target

ROOT = Path(__file__).parents[2]
CORE, FIRMWARE = ROOT / "cpp" / "core", ROOT / "firmware_export"
CORTEX_M7 = ("-mcpu=cortex-m7", "-mthumb", "-mfpu=fpv5-sp-d16", "-mfloat-abi=hard")
OTHERS = {
    "cortex-m4": ("-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"),
    "cortex-m33": ("-mcpu=cortex-m33", "-mthumb", "-mfpu=fpv5-sp-d16", "-mfloat-abi=hard"),
    "cortex-m3": ("-mcpu=cortex-m3", "-mthumb"),
}
FLAGS = (
    *("-std=c++17", "-O2", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics"),
    *("-fno-use-cxa-atexit", "-fno-math-errno", "-ffp-contract=off", "-ffunction-sections"),
    *("-fdata-sections", "-fno-tree-loop-distribute-patterns", "-Wall", "-Wextra", "-Werror"),
)


def test_the_assembly_computes_what_the_portable_kernels_do(tmp_path: Path) -> None:
    need_firmware_tools(EMULATOR)
    firmware = tmp_path / "comparison.elf"
    common = [FIRMWARE / "common" / f"{name}.cpp" for name in ("log", "memory", "semihosting")]
    start = sorted((FIRMWARE / "drivers" / "cortex_m").glob("*.cpp"))
    script = tmp_path / "link.ld"
    script.write_bytes(link_script(find_target("qemu-mps2-an500")))
    succeed(
        *(COMPILER, *FLAGS, *CORTEX_M7, f"-I{ROOT / 'cpp'}", f"-I{FIRMWARE}"),
        *("-nostartfiles", "-nodefaultlibs", "-Wl,--gc-sections"),
        *("-T", script),
        ROOT / "tests" / "support" / "arm_dsp_comparison.cpp",
        *(CORE / "base" / name for name in ("crc32.cpp", "random.cpp")),
        *sorted((CORE / "kernels").rglob("*.cpp")),
        *(*common, *start, "-lgcc", "-o", firmware),
    )
    log = succeed(
        *(EMULATOR, "-M", "mps2-an500", "-display", "none", "-monitor", "none"),
        *("-serial", "none", "-chardev", "stdio,id=console", "-semihosting-config"),
        "enable=on,target=native,chardev=console,arg=comparison",
        *("-kernel", firmware),
    )
    assert log == "equal in 1706 cases\n"


@pytest.mark.parametrize("core", OTHERS)
def test_the_kernels_compile_for_other_cores(core: str, tmp_path: Path) -> None:
    """With the DSP extension they are the device's kernels; without it the portable ones are."""
    need_firmware_tools("arm-none-eabi-objdump")
    text = ""
    for source in sorted((CORE / "kernels").rglob("*.cpp")):
        target = tmp_path / f"{source.stem}.o"
        succeed(COMPILER, *FLAGS, *OTHERS[core], f"-I{CORE.parent}", "-c", source, "-o", target)
        if source.stem == "device_kernels":
            text = succeed("arm-none-eabi-objdump", "-dr", target)
    assert ("arm_dsp_kernels" in text) == (core != "cortex-m3")
    assert ("portable_kernels" in text) == (core == "cortex-m3")
