"""No function that other files may share is compiled for more than the baseline.

An inline function in two translation units is one function after linking. Were the copy of a file
for AVX-512 the one that stays, a processor without it would stop at an illegal instruction.
"""

import re
import subprocess
from pathlib import Path

import pytest
from required import need_tools

CPP = Path(__file__).parents[2] / "cpp"
# The prefix is there on an x86 Debian as well, whose own tools they are.
TOOLS = ("x86_64-linux-gnu-g++", "x86_64-linux-gnu-nm", "x86_64-linux-gnu-objdump")
WIDE = re.compile(r"%[yz]mm|\bv(p|mov|add|mul|cvt)[a-z0-9]+\s")


@pytest.mark.parametrize("table", ["avx2", "avx_vnni", "avx512_vnni"])
def test_shared_functions_are_baseline_code(table, tmp_path):
    need_tools(*TOOLS, packages="g++-x86-64-linux-gnu")
    compiled = tmp_path / f"{table}.o"
    source = CPP / "host" / "kernels" / f"{table}.cpp"
    compiler, nm, objdump = TOOLS
    command = [compiler, "-std=c++17", "-O0", "-ffp-contract=off", f"-I{CPP}", "-c", source]
    subprocess.run([*command, "-o", compiled], check=True)
    symbols = subprocess.run([nm, compiled], check=True, capture_output=True, text=True).stdout
    shared = set(re.findall(r"^\S* [WVu] (\S+)$", symbols, re.MULTILINE))
    assert shared, "at -O0 inline functions are functions"
    disassemble = [objdump, "-d", "--no-show-raw-insn", compiled]
    code = subprocess.run(disassemble, check=True, capture_output=True, text=True).stdout
    functions = re.findall(r"^[0-9a-f]+ <(\S+)>:\n((?:.+\n)*)", code, re.MULTILINE)
    bodies = dict(functions)
    assert [name for name in sorted(shared) if WIDE.search(bodies.get(name, ""))] == []
    own = [name for name in bodies if name not in shared and WIDE.search(bodies[name])]
    assert own, "the kernels themselves are wide"
