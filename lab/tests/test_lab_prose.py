"""Decimals in the prose of the lab's pages stand in a table of their section, or follow from one.

One that follows says how in a comment behind it: ``<!-- 0.18 = 1.445 - 1.270 -->``. Decimals on the
right are those of tables; whole numbers are settings. The tables of another section or page of the
lab count where the paragraph links to it. Whole numbers and powers of ten in prose are not read.
"""

import ast
import operator
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

LAB = Path(__file__).parents[1] / "pages"
PAGES = sorted(LAB.glob("*.md"))

_MADE = re.compile(
    r"<!-- (?:table:.*?-->.*?<!-- end of table|results(?:: [\w-]+)? -->.*?<!-- end of results) -->",
    re.DOTALL,
)
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_ROW = re.compile(r"^\|.*$", re.MULTILINE)
_COMMENT = re.compile(r"<!--(.*?)-->", re.DOTALL)
_NOT_PROSE = re.compile(r"`[^`]*`|\]\([^)]*\)|https?://\S+")
_DECIMAL = re.compile(r"(?<![\w,])(?<!\d\.)\d[\d,]*\.\d+(?!\w|\.\d)")
_HEADING = re.compile(r"^(#+) (.*)$", re.MULTILINE)
_OPERATORS: dict[type, Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def tables(text: str) -> set[str]:
    """Return the decimals of made parts, code, and table rows."""
    made = [*_MADE.findall(text), *_FENCE.findall(_MADE.sub("", text)), *_ROW.findall(text)]
    return set(_DECIMAL.findall("\n".join(made)))


def prose(text: str) -> str:
    for pattern in (_MADE, _FENCE, _ROW):
        text = pattern.sub("", text)
    return text


def sections(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield each heading's anchor, the text up to the next heading, and that of its whole part."""
    text = _FENCE.sub(lambda code: code[0].replace("\n#", "\n #"), text)
    found = [*_HEADING.finditer(text)]
    for place, heading in enumerate(found):
        later = [other for other in found[place + 1 :] if len(other[1]) <= len(heading[1])]
        end = later[0].start() if later else len(text)
        following = found[place + 1].start() if place + 1 < len(found) else len(text)
        anchor = re.sub(r"[^\w -]", "", heading[2].lower()).replace(" ", "-")
        yield anchor, text[heading.end() : following], text[heading.end() : end]


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


def linked(paragraph: str, parts: dict[str, str]) -> set[str]:
    """Return the decimals of tables that a paragraph links to."""
    found: set[str] = set()
    for page, anchor in re.findall(r"\]\((\w+\.md)?(?:#([\w-]+))?\)", paragraph):
        if page and (LAB / page).is_file():
            found |= tables((LAB / page).read_text())
        elif anchor in parts and not page:
            found |= tables(parts[anchor])
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_decimals_stand_in_a_table_or_follow_from_one(page):
    text = page.read_text()
    found = list(sections(text))
    parts = {anchor: whole for anchor, _, whole in found}
    lost = []
    for anchor, own, whole in found:
        near = tables(whole) or tables(text)
        for paragraph in prose(own).split("\n\n"):
            shown = near | linked(paragraph, parts)
            rules = [pair for c in _COMMENT.findall(paragraph) for pair in derived(c)]
            lost += [
                f"{anchor}: {f} of {r}"
                for _, r in rules
                for f in _DECIMAL.findall(r)
                if f not in shown
            ]
            said = _NOT_PROSE.sub("", _COMMENT.sub("", paragraph))
            known = shown | {figure for figure, _ in rules}
            lost += [f"{anchor}: {f}" for f in _DECIMAL.findall(said) if f not in known]
    assert lost == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_follows_from_a_table_is_computed_right(page):
    for comment in _COMMENT.findall(prose(page.read_text())):
        for figure, formula in derived(comment):
            places = len(figure.partition(".")[2])
            found = value(ast.parse(formula, mode="eval").body)
            assert f"{found:.{places}f}" == figure, formula


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_cells_of_tables_are_whole(page):
    """A stroke ends a cell, in code too, unless a backslash stands before it."""
    cut, columns = [], 0
    for line in _FENCE.sub("", page.read_text()).splitlines():
        cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        columns = cells and (columns or cells)
        cut += [line] if cells != columns else []
    assert cut == []


def test_a_figure_from_nowhere_is_found():
    page = (
        "# A\n\n## One sign\n\nIt gains 0.18.\n\n| 1.445 |\n\n## Two\n\n0.7..1.6\n\n```\n2.5\n```"
    )
    assert [(anchor, tables(whole)) for anchor, _, whole in sections(page)] == [
        ("a", {"1.445", "2.5"}),
        ("one-sign", {"1.445"}),
        ("two", {"2.5"}),
    ]
    assert _DECIMAL.findall(prose(page)) == ["0.18", "0.7", "1.6"]
    assert derived(" 0.18 = 1.445 - 1.27; 0.2 =\n mean(0.1, 0.3) ") == [
        ("0.18", "1.445 - 1.27"),
        ("0.2", "mean(0.1, 0.3)"),
    ]
    assert derived(" table: x.json ") == []
    assert value(ast.parse("mean(0.1, 0.3) * (2 + 1)", mode="eval").body) == pytest.approx(0.6)
    with pytest.raises(ValueError, match="Name"):
        value(ast.parse("figure", mode="eval").body)
