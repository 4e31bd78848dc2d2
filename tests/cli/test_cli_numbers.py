"""Numbers on the command line: text that is none is refused with option, value, rule and remedy."""

import argparse
import re

import pytest

from pmt.cli import main
from pmt.cli.program import make_parser


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
