"""The arm_dsp kernels' assembly, run on an emulated Cortex-M7, and compiled for other cores."""

import pytest
from firmware_tools import COMPILER, CORE, FLAGS, need_firmware_tools, run_on_cortex_m7, succeed

OTHERS = {
    "cortex-m4": ("-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"),
    "cortex-m33": ("-mcpu=cortex-m33", "-mthumb", "-mfpu=fpv5-sp-d16", "-mfloat-abi=hard"),
    "cortex-m3": ("-mcpu=cortex-m3", "-mthumb"),
}


def test_the_assembly_computes_what_the_portable_kernels_do(tmp_path):
    log = run_on_cortex_m7("arm_dsp_comparison.cpp", ("base", "kernels"), tmp_path)
    assert log == "equal in 1706 cases\n"


@pytest.mark.parametrize("core", OTHERS)
def test_the_kernels_compile_for_other_cores(core, tmp_path):
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
