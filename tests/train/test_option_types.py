"""Options as keyword arguments: type checkers know their names and types."""

import dataclasses
import subprocess
import sys

import pmt
from pmt.train.option_types import OptionArguments

_PROGRAM = """
import pmt

pmt.ZOTrainer(layers="head", epochs=4, learning_rate=0.1)
pmt.ZOTrainer(loss=lambda logits, labels: logits.sum(axis=2))
pmt.preset("paper", queries=10)
pmt.ZOTrainer(lerning_rate=0.1)
pmt.ZOTrainer(epochs="four")
pmt.preset("default", rule=3)
pmt.quantise
"""


def test_keyword_arguments_are_the_options():
    fields = {field.name: field.type for field in dataclasses.fields(pmt.TrainingOptions)}
    found = {name: type_.__forward_arg__ for name, type_ in OptionArguments.__annotations__.items()}
    assert found.pop("loss") == "str | LossFunction"
    assert fields.pop("loss") == "str"
    assert found == fields


def test_mypy_finds_wrong_names_and_types(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), str(program)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    lines = [line.partition(": ")[0] for line in done.stdout.splitlines() if ": error: " in line]
    assert lines == [f"program.py:{number}" for number in (7, 8, 9, 10)], done.stdout
