"""The pages of reproductions: every study's rows as Markdown, from the versioned results only."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from pmt._util.progress import duration
from pmt._util.text import printable
from pmt_lab.files import write_text
from pmt_lab.reproduce import STUDIES, compared_rows, results
from pmt_lab.reproduce.study import Row, Study, Verdict

TITLES = ("", "ours", "95 % interval", "published", "difference", "unit", "verdict", "why")
_DIGITS = {"%": 1, "MMAC": 1, "KB": 0, "ms": 0, "nats": 3, "cosine": 3, "points": 1}
# From here on a number of any unit has four digits without a decimal place.
_THOUSANDS = 1000
_FIRST = re.compile(r"^<!-- results(?:: ([^\n]*))? -->$", re.MULTILINE)
_LAST = "<!-- end of results -->"
_BLOCK = re.compile(f"({_FIRST.pattern})\n.*?^{_LAST}$", re.MULTILINE | re.DOTALL)
# From here on a number is written with an exponent.
_LARGE = 10**6
# Squared errors differ by factors of thousands: whole numbers, ours and computed ones alike.
_SQUARES = "|g|^2"


def page(folder: str | Path) -> str:
    """Return the tables of all studies as Markdown, after a line for each that says its verdicts.

    A study without a result in the folder is said to be not run. A FileNotFoundError says that the
    folder is missing or holds no result, a ValueError that a file is damaged.
    """
    parts = _parts(folder, {})
    sections = [f"## {_heading(one)}\n\n{parts[one.name]}\n" for one in STUDIES.values()]
    return "\n".join([parts[""], "", *sections])


def write_pages(folder: str | Path, pages: str | Path) -> None:
    """Write tables between the marks of a folder's Markdown files.

    From ``<!-- results: STUDY -->`` to ``<!-- end of results -->`` stands a study's table, after
    ``<!-- results -->`` the verdicts of all, with links to the sections of those tables. Files
    without a mark stay as they are. Errors are those of :func:`page`; a ValueError also says that
    no file has a mark, or a mark has no end or names no study.
    """
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(Path(pages).glob("*.md"))}
    names = {path: _FIRST.findall(text) for path, text in texts.items() if _FIRST.search(text)}
    if not names:
        raise ValueError(
            f"{pages}: no Markdown file there has a line <!-- results --> or <!-- results: STUDY "
            f"--> and, after it, a line {_LAST}; add them"
        )
    parts = _parts(folder, {name: path.name for path, own in names.items() for name in own})
    filled = {path: _filled(path, texts[path], own, parts) for path, own in names.items()}
    for path, text in filled.items():
        write_text(path, text)


def _parts(folder: str | Path, places: Mapping[str, str]) -> dict[str, str]:
    """Return the text of each study by its name, and that of the verdicts as ``""``."""
    if not any(results.path_of(name, folder).is_file() for name in STUDIES):
        raise FileNotFoundError(
            f"{folder}: holds no result of a study; give the folder that --results wrote to"
        )
    overview, parts = [("in the paper", "", "verdicts"), ("---",) * 3], {}
    for study in STUDIES.values():
        try:
            result = results.load(study.name, folder)
        except FileNotFoundError:
            said, body = "not run", [f"Not run: `pmt-lab reproduce {study.name}`."]
        else:
            rows = compared_rows(study, result, results.path_of(study.name, folder))
            said = summary(rows)
            body = [
                f"{_origin(study, result)} {said.capitalize()}.\n",
                *([f"{study.conditions}\n"] if study.conditions else []),
                *map(_line, (TITLES, ["---"] * len(TITLES), *map(row_cells, rows))),
            ]
        item = study.item
        if study.name in places:
            anchor = re.sub(r"[^\w -]", "", _heading(study).lower()).replace(" ", "-")
            item = f"[{item}]({places[study.name]}#{anchor})"
        overview.append((item, study.title, said))
        parts[study.name] = "\n".join(body)
    return {"": "\n".join(map(_line, overview)), **parts}


def _heading(study: Study) -> str:
    return f"{study.item}: {study.title}"


def _filled(path: Path, text: str, names: Sequence[str], parts: Mapping[str, str]) -> str:
    """Return a file's text with the parts of the names between its marks."""
    for name in names:
        if name not in parts:
            raise ValueError(f"{path}: <!-- results: {name} --> names no study; see --list")
    filled, count = _BLOCK.subn(lambda at: f"{at[1]}\n\n{parts[at[2] or '']}\n\n{_LAST}", text)
    if count != len(names):
        raise ValueError(f"{path}: a line <!-- results ... --> needs, after it, a line {_LAST}")
    return filled


def row_cells(row: Row) -> list[str]:
    """Return a row as text, in the order of TITLES; empty where there is nothing."""
    ours, theirs = row.ours, row.theirs
    printed, difference = str(theirs or ""), ""
    if isinstance(theirs, float | int):
        printed = _published(theirs, row.unit)
        difference = "" if ours is None else _number(ours - theirs, row.unit, "+")
    return [
        row.what,
        "" if ours is None else _number(ours, row.unit),
        "..".join(_number(end, row.unit) for end in row.interval or ()),
        printed,
        difference,
        row.unit,
        row.verdict,
        row.why,
    ]


def summary(rows: Sequence[Row]) -> str:
    """Return how many rows have which verdict: ``"3 reproduced, 1 not run"``."""
    counts = Counter(str(row.verdict) for row in rows)
    return ", ".join(f"{counts[name]} {name}" for name in get_args(Verdict) if counts[name])


def _origin(study: Study, result: Mapping[str, Any]) -> str:
    commit = f" ({result['commit']})" if result["commit"] else ""
    scale = f", at {result['scale']} scale" if result["scale"] != "full" else ""
    return printable(
        f"`pmt-lab reproduce {study.name}`{scale}: pmt {result['pmt']}{commit}, {result['date']}, "
        f"{result['machine']}, {duration(result['seconds'])}."
    )


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(printable(cell).replace('|', chr(92) + '|') for cell in cells)} |"


def _number(value: float, unit: str, sign: str = "") -> str:
    if unit == _SQUARES:
        return f"{value:{sign},.0f}"
    if abs(value) >= _LARGE:
        return f"{value:{sign}.3g}"
    if unit in _DIGITS:
        return f"{value:{sign},.{_DIGITS[unit]}f}"
    whole = float(value).is_integer() or abs(value) >= _THOUSANDS
    return f"{value:{sign},.0f}" if whole else f"{value:{sign}.4g}"


def _published(value: float, unit: str) -> str:
    """Return a number with the digits that the paper prints; a formula's value with five."""
    if unit == _SQUARES or (abs(value) >= _THOUSANDS and float(value).is_integer()):
        return _number(value, unit)
    if abs(value) >= _LARGE:
        return f"{value:.3g}"
    return f"{value if float(value).is_integer() else float(f'{value:.5g}'):,}"
