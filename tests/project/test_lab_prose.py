"""Figures in the prose of the lab's pages stand in a table of the page, or follow from one.

A figure that follows says how in a comment behind it: ``<!-- 0.18 = 1.445 - 1.270 -->``. Decimals
on the right are those of the page's tables; whole numbers are settings.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from pathlib import Path

import pytest

LAB = Path(__file__).parents[2] / "docs" / "lab"
PAGES = sorted(LAB.glob("*.md"))

_MADE = re.compile(
    r"<!-- (?:table:.*?-->.*?<!-- end of table|results -->.*?<!-- end of results) -->", re.DOTALL
)
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--(.*?)-->", re.DOTALL)
_NOT_PROSE = re.compile(r"`[^`]*`|\]\([^)]*\)|https?://\S+")
_DECIMAL = re.compile(r"(?<![\w.,])\d[\d,]*\.\d+(?!\w|\.\d)")
_OPERATORS: dict[type, Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def tables(text: str) -> str:
    """Return what is no prose: made parts, code, and table rows."""
    made = [*_MADE.findall(text), *_FENCE.findall(_MADE.sub("", text))]
    rows = re.findall(r"^\|.*$", text, re.MULTILINE)
    return "\n".join([*made, *rows])


def prose(text: str) -> str:
    for pattern in (_MADE, _FENCE, re.compile(r"^\|.*$", re.MULTILINE)):
        text = pattern.sub("", text)
    return text


def derived(comment: str) -> list[tuple[str, str]]:
    """Return figures and what they follow from, of a comment that has any."""
    parts = [part.split("=", 1) for part in comment.split(";")]
    if not all(len(part) == 2 and _DECIMAL.fullmatch(part[0].strip()) for part in parts):
        return []
    return [(figure.strip(), " ".join(formula.split())) for figure, formula in parts]


def value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](value(left), value(right))
        case ast.Call(func=ast.Name(id="mean"), args=args):
            return sum(map(value, args)) / len(args)
    raise ValueError(ast.dump(node))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_figures_that_follow_from_a_table_follow_from_it(page: Path) -> None:
    text = page.read_text()
    shown = set(_DECIMAL.findall(tables(text)))
    for comment in _COMMENT.findall(prose(text)):
        for figure, formula in derived(comment):
            places = len(figure.partition(".")[2])
            assert f"{value(ast.parse(formula, mode='eval').body):.{places}f}" == figure, formula
            assert set(_DECIMAL.findall(formula)) <= shown, formula


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_figures_in_prose_stand_in_a_table_or_follow_from_one(page: Path) -> None:
    text = page.read_text()
    shown = set(_DECIMAL.findall(tables(text)))
    lost = []
    for paragraph in prose(text).split("\n\n"):
        known = set(shown)
        for comment in _COMMENT.findall(paragraph):
            known |= {figure for figure, _ in derived(comment)}
        for linked in re.findall(r"\]\((\w+\.md)", paragraph):
            if (LAB / linked).is_file():
                known |= set(_DECIMAL.findall(tables((LAB / linked).read_text())))
        said = _NOT_PROSE.sub("", _COMMENT.sub("", paragraph))
        lost += [figure for figure in _DECIMAL.findall(said) if figure not in known]
    assert lost == []


def test_a_figure_from_nowhere_is_found() -> None:
    page = "It gains 0.18.\n\n| a |\n| --- |\n| 1.445 |\n\n<!-- 0.18 = 1.445 - 1.27 -->"
    assert _DECIMAL.findall(prose(page)) == ["0.18", "0.18", "1.445", "1.27"]
    assert derived(" 0.18 = 1.445 - 1.27; 0.2 =\n mean(0.1, 0.3) ") == [
        ("0.18", "1.445 - 1.27"),
        ("0.2", "mean(0.1, 0.3)"),
    ]
    assert derived(" table: x.json ") == []
    assert value(ast.parse("mean(0.1, 0.3) * (2 + 1)", mode="eval").body) == pytest.approx(0.6)
    with pytest.raises(ValueError, match="Name"):
        value(ast.parse("figure", mode="eval").body)
