"""Figures that a command prints as JSON, to compare with those of the function behind it."""

import json
from collections.abc import Callable
from typing import Any

import pytest

# Values that change from run to run.
OF_THE_MOMENT = ("seconds", "train_seconds", "images_per_second")


def printed_by(
    main: Callable[[list[str]], int], capsys: pytest.CaptureFixture[str]
) -> Callable[..., Any]:
    """A function that runs a command and returns its JSON."""

    def run(*arguments: object) -> Any:
        capsys.readouterr()
        assert main([*map(str, arguments), "--json", "-"]) == 0
        return json.loads(capsys.readouterr().out)

    return run


def plain(figures: Any) -> Any:
    """The figures as JSON gives them back, without what changes from run to run."""

    def kept(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: kept(v) for k, v in value.items() if k not in OF_THE_MOMENT}
        return [kept(v) for v in value] if isinstance(value, list) else value

    return kept(json.loads(json.dumps(figures)))
