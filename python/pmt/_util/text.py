"""Words for people: counts, names that were meant, tables, and untrusted text made safe."""

import difflib
import re
from collections.abc import Iterable, Sequence
from html import escape


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a number, with commas, and its noun: singular for 1, else by default with an s."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


_MOST_LISTED = 4


def listed(names: Sequence[object], separator: str = ", ") -> str:
    """Return the first few names or problems, and how many there are besides."""
    shown = separator.join(map(str, names[:_MOST_LISTED]))
    rest = len(names) - _MOST_LISTED
    gap = "" if separator == ", " else separator.rstrip()
    return f"{shown}{gap} and {rest} more" if rest > 0 else shown


def split_names(text: str) -> tuple[str, ...]:
    """Split a text at its commas."""
    return tuple(part.strip() for part in text.split(","))


# Typing errors seldom touch the first letter; "model" is not meant to be "node", "limit" not to be
# "list". Less is enough for swapped letters, and for names that begin alike.
_LIKENESS, _LIKENESS_OF_OTHER_LETTER, _LIKENESS_OF_ALIKE = 0.7, 0.75, 0.65
_SAME_BEGINNING = 4


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is spelled most alike, or None.

    Upper and lower case do not count, nor the dashes before a flag, which make all flags alike.
    Initials are as good as the name: ``lr`` is ``learning_rate``.
    """
    wanted = _plain(name)
    spelled = {_plain(k): str(k) for k in known}
    abbreviated = [k for k in spelled if _initials(k) == wanted]
    if len(abbreviated) == 1:
        return spelled[abbreviated[0]]
    for candidates, likeness in (
        (list(spelled), _LIKENESS_OF_OTHER_LETTER),
        ([k for k in spelled if k[:1] == wanted[:1]], _LIKENESS),
        ([k for k in spelled if _are_alike(k, wanted)], _LIKENESS_OF_ALIKE),
    ):
        near = difflib.get_close_matches(wanted, candidates, n=1, cutoff=likeness)
        if near:
            return spelled[near[0]]
    return None


def _plain(name: object) -> str:
    return str(name).lower().lstrip("-")


def _are_alike(one: str, other: str) -> bool:
    """Whether letters are only swapped, or both begin alike."""
    shorter = min(len(one), len(other), _SAME_BEGINNING)
    return sorted(one) == sorted(other) or one[:shorter] == other[:shorter]


def _initials(name: str) -> str | None:
    """Return the first letters of a name of several words."""
    words = [word for word in re.split("[-_]", name) if word]
    return "".join(word[0] for word in words) if len(words) > 1 else None


def did_you_mean(name: str, known: Iterable[str], choose: str = "choose one of") -> str:
    """Return ``"; did you mean 'x'?"``, or the names that there are where none is near."""
    names = [str(k) for k in known]
    near = nearest(name, names)
    return f"; did you mean {near!r}?" if near else f"; {choose} {', '.join(names)}"


# C0, DEL and C1; marks, overrides and isolates of direction; separators of lines; lone surrogates.
_STEERING = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str, keep: str = "") -> str:
    r"""Return a text with its control characters escaped, as ``\x1b``, ``\n`` or ``\u202e``.

    Those in `keep` stay, such as the newlines of a text of several lines.
    """
    return _STEERING.sub(lambda found: found[0] if found[0] in keep else _escaped(found[0]), text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def c_text(text: str) -> str:
    """Return a text as a string literal of C, its control characters as :func:`printable` does."""
    shown = printable(text).encode()
    return (
        '"'
        + "".join(chr(b) if b < 0x7F and b not in b'"\\?' else f"\\{b:03o}" for b in shown)
        + '"'
    )


def table(titles: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[str] = ()) -> str:
    """Lay out escaped cells in lines; columns titled in ``left`` are aligned left, others right."""
    titles = [printable(title) for title in titles]
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(line[i]) for line in [titles, *rows]) for i in range(len(titles))]

    def laid_out(line: Sequence[str]) -> str:
        cells = (
            cell.ljust(width) if title in left else cell.rjust(width)
            for cell, width, title in zip(line, widths, titles, strict=True)
        )
        return "  ".join(cells).rstrip()

    return "\n".join(laid_out(line) for line in [titles, *rows])


def shortened(
    rows: Sequence[Sequence[str]], most: int, *, keep: Sequence[int] = ()
) -> list[list[str]]:
    """Return at most this many rows: the first ones, the last ones and those to ``keep``.

    A row of ``...`` and the number of those left out stands in each gap.
    """
    if len(rows) <= most:
        return [list(row) for row in rows]
    head = most // 2
    shown = sorted({*range(head), *keep, *range(len(rows) - (most - head - len(keep)), len(rows))})
    found: list[list[str]] = []
    for place, row in enumerate(shown):
        missing = row - (shown[place - 1] if place else -1) - 1
        if missing:
            found.append(["...", f"{missing:,} more", *[""] * (len(rows[row]) - 2)])
        found.append(list(rows[row]))
    return found


def html_table(caption: str, titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table for ``_repr_html_``; an empty caption and titles all empty are left out."""
    title = f"<caption>{_html(caption)}</caption>" if caption else ""
    head = _html_row("th", titles) if any(titles) else ""
    body = "".join(_html_row("td", row) for row in rows)
    return f"<table>{title}{f'<thead>{head}</thead>' if head else ''}<tbody>{body}</tbody></table>"


def _html_row(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{_html(cell)}</{tag}>" for cell in cells) + "</tr>"


def _html(text: str) -> str:
    return escape(printable(text))
