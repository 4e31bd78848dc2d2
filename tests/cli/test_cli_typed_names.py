"""Errors name arguments as they are typed, numbers too; commands that are printed can be typed."""

import argparse
import ast
import re
import shlex
import sys
from pathlib import Path

import pytest
from cli_files import write_model

import pmt
from pmt.cli import main
from pmt.cli.program import make_parser
from pmt.cli.typed_names import as_typed

LONG = "a" * 260


def message_of(capsys, *arguments: str) -> str:
    assert main([*arguments]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("pmt: error: ")
    assert printed.count("\n") == 1
    return printed.removeprefix("pmt: error: ").rstrip()


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        ("convert none.pmt out.pmt", "MODEL 'none.pmt': there is no such file"),
        ("convert cifar10_small none/out.pmt", "OUT 'none/out.pmt': the folder "),
        ("convert cifar10_small out.bin", "OUT 'out.bin': suffix '.bin' is unknown; "),
        ("quantize none.onnx --calibrate bundled --out q.pmt", "MODEL.onnx 'none.onnx': there"),
        ("info cifar10_small --batch 0", "argument --batch: 0 must be 1 or more"),
        ("info cifar10_smal", "MODEL 'cifar10_smal': there is no such file"),
        ("info runs/lr0.5", "MODEL 'runs/lr0.5': there is no such file, run folder or bundled"),
        (
            "train cifar10_small --data bundled --out x --learning-rate 1 --set learning_rate=2",
            "--set learning_rate: it is given twice; leave one out",
        ),
        (
            "train cifar10_small --data bundled --out x --set batch=2 --set batch=3",
            "--set batch: it is given twice; leave one out",
        ),
        ("eval cifar10_small --data bundled --against none.pmt", "--against='none.pmt': there is"),
        ("profile cifar10_small --method paper --against mezzo", "--against='mezzo' is unknown"),
        ("profile cifar10_small --method paper --against mezo,x", "--against='x' is unknown"),
        ("profile cifar10_small --method adam", "--method='adam' is unknown"),
        ("eval cifar10_small --data bundled --coarse-labels", "--coarse-labels: the bundled"),
        ("show bundled --out x.png --split valid", "--split='valid' is unknown"),
        ("train cifar10_small --data bundled --out x --learning-rate nan", "--learning-rate=nan "),
        (
            "train cifar10_small --data bundled --out x --no-train-weights --no-train-bias",
            "--no-train-weights and --no-train-bias train nothing; train one of them",
        ),
        ("train --resume x --epochs 3", "--resume takes no --epochs: "),
        ("train cifar10_small --resume x", "--resume takes no MODEL: "),
        ("convert cifar10_small x.pmt --input-mean 3", "--input-mean: unknown for the bundled"),
        ("eval cifar10_small --data /dev/null", "/dev/null: a file, but not .npz; give one of"),
        (
            "scheme cifar10_small --method tinytrain --data bundled --out .",
            "--out .: must be a file",
        ),
        ("predict cifar10_small", "the following arguments are required: FILES; see "),
    ],
)
def test_arguments_are_named_as_they_are_typed(arguments, start, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert message_of(capsys, *arguments.split()).startswith(start)


def test_an_empty_name_is_that_of_the_argument_that_is_empty(capsys):
    assert message_of(capsys, "train", "--resume", "").startswith("--resume='' names nothing")
    assert message_of(capsys, "predict", "cifar10_small", "").startswith("FILES '' names nothing")
    assert message_of(capsys, "train", "--plugin", "").startswith("--plugin='' names nothing")


@pytest.mark.parametrize(
    ("message", "typed"),
    [
        ("a learning_rate below 0.1 may help", "a --learning-rate below 0.1 may help"),
        ("use less, or keep_best=False, which", "use less, or --no-keep-best, which"),
        ("loss 2; keep_best=True keeps it", "loss 2; --keep-best keeps it"),
        ("input_mean=[nan, 2.0]: needs one", "--input-mean=nan,2.0: needs one"),
        ("names as class_names (--class-names), or", "names as --class-names, or"),
        ("a new layer by classes=2 (--classes)", "a new layer by --classes=2"),
        ("pmt.statistics(model, images) (pmt statistics) adds", "`pmt statistics` adds"),
        (
            "runs/keep_best/x: 'keep_best', keep_best.txt",
            "runs/keep_best/x: 'keep_best', keep_best.txt",
        ),
        (
            "a smaller held_out, or fewer images (--limit)",
            "a smaller held_out, or fewer images (--limit)",
        ),
    ],
)
def test_words_of_python_within_a_sentence_are_told_as_they_are_typed(message, typed):
    names = {
        name: f"--{name.replace('_', '-')}"
        for name in ("learning_rate", "keep_best", "input_mean", "class_names", "classes", "limit")
    }
    assert as_typed(message, {"argument_names": names}) == typed


def test_a_name_that_is_no_argument_or_has_another_value_stays():
    given = {"argument_names": {"model": "MODEL", "seed": "--seed"}, "model": "a.pmt", "seed": 3}
    assert as_typed("seed=4 must be 3", given) == "seed=4 must be 3"
    assert as_typed("path='b.pmt': no", given) == "path='b.pmt': no"
    assert as_typed("a.pmt: seed=3 is odd; give x=2", given) == "a.pmt: --seed=3 is odd; give x=2"
    assert as_typed("path='./a.pmt': no", given) == "MODEL './a.pmt': no"
    plugins = {"argument_names": {"plugin": "--plugin"}, "plugin": ["no"]}
    assert as_typed("plugin='no': none", plugins) == "--plugin='no': none"
    assert as_typed("plugin='of the environment': no", plugins).startswith("plugin=")


@pytest.mark.parametrize(
    "arguments",
    [
        "info cifar10_small --json {}",
        "doctor --json {}",
        "convert cifar10_small {}.npz",
        "convert {} out.npz",
        "corrupt bundled --name fog --out {}/x",
        "show bundled --out {}.png",
        "export cifar10_small --target qemu --out {}",
        "download --root {}",
        "predict cifar10_small {}.png",
        "scheme cifar10_small --method mcutrain --data bundled --out {}",
        "scheme cifar10_small --method mcutrain --data bundled --out x.json --cache {}",
        "quantize x.onnx --calibrate bundled --out {}.pmt",
        "stream {} --data bundled",
        "train cifar10_small --data bundled --out {}",
        "train --resume {}",
        "monitor --file {}",
        "demo --out {}",
        "align cifar10_small --data bundled --out {}.pmt",
        "statistics cifar10_small --data bundled --out {}.pmt",
        "select cifar10_small --data bundled --out {}",
        "profile cifar10_small --method paper --plot {}.png",
        "eval cifar10_small --data {}",
        "eval cifar10_small --data bundled --against {}",
    ],
)
def test_a_name_that_is_too_long_is_found_before_the_work(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    typed = arguments.format(LONG).split()
    message = message_of(capsys, *typed)
    place = next(i for i, text in enumerate(typed) if LONG in text)
    named = typed[place - 1] if typed[place - 1].startswith("--") else "[A-Z]+"
    rule = r"a name has 26\d bytes, at most 25\d are supported; choose a shorter one"
    assert re.fullmatch(rf"{named} a{{40}}\.\.\.: {rule}", message)
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_is_too_long_is_refused(capsys):
    message = message_of(capsys, "eval", "cifar10_small", "--data", "x/" * 2500)
    assert "...: the path has 5,000 bytes, at most 4,000 are supported" in message


def test_names_of_240_bytes_are_written(tmp_path, capsys):
    model, out = write_model(tmp_path), tmp_path / f"{'b' * 236}.npz"
    assert main(["convert", str(model), str(out)]) == 0
    umlauts = tmp_path / f"{'ä' * 120}.npz"
    assert main(["convert", str(model), str(umlauts), "--json", str(tmp_path / ("c" * 240))]) == 0
    assert sorted(len(path.name) for path in tmp_path.iterdir()) == [9, 124, 240, 240]
    assert umlauts.read_bytes() == out.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        (["eval", "a input_mean b.pmt", "--data", "bundled"], "MODEL 'a input_mean b.pmt': there"),
        (["eval", "cifar10_small", "--data", "the class_names dir"], "--data the class_names dir:"),
        (
            ["statistics", "cifar10_small", "--data", "bundled", "--out", "a input_mean b/x.pmt"],
            "--out a input_mean b/x.pmt: its folder does not exist",
        ),
        (
            ["train", "cifar10_small", "--data", "bundled", "--out", "x", "--set", "keep_best=m"],
            "--set keep_best=m: 'm' must be yes or no",
        ),
        (
            [
                "train",
                "cifar10_small",
                "--data",
                "bundled",
                "--out",
                "x",
                "--set",
                "lerning_rate=1",
            ],
            "--set lerning_rate=1: 'lerning_rate' is not an option of default; did you mean "
            "'learning_rate'?",
        ),
    ],
)
def test_words_of_the_user_stand_as_they_are(arguments, start, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert message_of(capsys, *arguments).startswith(start)


@pytest.mark.skipif(sys.platform != "linux", reason="a device of Linux")
def test_a_full_device_for_the_figures_is_one_line(capsys):
    message = message_of(capsys, "info", "fashion_mnist_dscnn", "--json", "/dev/full")
    rule = r"could not write \d+ bytes \(No space left on device\); choose another file"
    assert re.fullmatch(rf"--json /dev/full: {rule}", message)


def printed_commands() -> list[str]:
    """Every command with operands that a text of the package shows in backticks or after next:."""
    found = []
    for path in sorted(Path(pmt.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            text = "".join(
                str(part.value)
                if isinstance(part, ast.Constant)
                else "x"
                if isinstance(part, ast.FormattedValue)
                else ""
                for part in parts
            )
            found += re.findall(r"(?:`|^|next: )(pmt [a-z]+ [^`|(\n]*[A-Zx][^`|(\n]*)(?:`|$)", text)
    return found


def test_commands_in_texts_can_be_typed():
    # Usages have brackets; helps say that a command reads the same as another.
    commands = {text for text in printed_commands() if "[" not in text} - {"pmt eval --data DIR"}
    assert "pmt quantize x --calibrate DIR --out x" in commands
    assert "pmt statistics MODEL --data CLEAN --out MODEL.pmt" in commands
    assert "pmt export MODEL --learner --target NAME --out DIR" in commands
    for text in commands:
        make_parser().parse_args(shlex.split(text)[1:])


def numbers() -> list[tuple[str, str, argparse.ArgumentParser, argparse.Action]]:
    """Return every argument that reads numbers: its command, its flag, the parser and itself."""
    commands = next(a for a in make_parser()._actions if isinstance(a.choices, dict))
    return [
        (command, action.option_strings[0], parser, action)
        for command, parser in commands.choices.items()
        for action in parser._actions
        if action.type is not None and isinstance(parser._get_value(action, "64"), (int, float))
    ]


FOUND = numbers()


@pytest.mark.parametrize("text", ["abc", "1.5x", "", "3,"])
def test_text_that_is_no_number_is_told_the_rule(text):
    assert len(FOUND) > 150
    rule = r"must be (a whole number, .+|a number, .+|a finite number .+|one number, or one .+)"
    for command, flag, parser, action in FOUND:
        with pytest.raises(argparse.ArgumentError) as caught:
            parser._get_value(action, text)
        told = str(caught.value)
        assert re.fullmatch(rf"argument \S*{flag}\S*: '{text}' {rule}", told), (command, told)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            "profile m --instructions --clock abc",
            "argument --clock: 'abc' must be a finite number above 0; see `pmt profile --help`",
        ),
        (
            "profile m --instructions --cycles-per-instruction 1,5",
            "argument --cycles-per-instruction: '1,5' must be a finite number above 0; see `pmt "
            "profile --help`",
        ),
        (
            "scheme m --data bundled --method mcutrain --out s.json --learning-rate much",
            "argument --learning-rate: 'much' must be a finite number above 0; see `pmt scheme "
            "--help`",
        ),
        (
            "train m --data bundled --learning-rate much",
            "argument --learning-rate: 'much' must be a finite number > 0; see `pmt train --help`",
        ),
        (
            "train m --data bundled --diversity much",
            "argument --diversity: 'much' must be a number, 0..10; see `pmt train --help`",
        ),
        (
            "train m --data bundled --queries 1.5",
            "argument --queries: '1.5' must be a whole number, 1..4096; see `pmt train --help`",
        ),
    ],
)
def test_the_error_has_option_value_rule_and_remedy(command, message, capsys):
    assert main(command.split()) == 2
    assert capsys.readouterr() == ("", f"pmt: error: {message}\n")
