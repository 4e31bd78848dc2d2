"""Lists of corruptions and of severities on the command line."""

from __future__ import annotations

from pmt.corruptions import SEVERITIES, names

__all__ = ["chosen_corruptions", "chosen_severities"]


def chosen_corruptions(option: str, text: str) -> tuple[str, ...]:
    """Return the corruptions of ``all`` or ``fog,contrast``, each once, in the order given.

    Raises
    ------
    ValueError
        Unknown names, all of them in one message.
    """
    if text == "all":
        return names()
    chosen = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    unknown = [repr(name) for name in chosen if name not in names()]
    if unknown:
        raise ValueError(
            f"{option} {', '.join(unknown)} is unknown; choose all, or some of {', '.join(names())}"
        )
    return chosen


def chosen_severities(option: str, text: str) -> tuple[int, ...]:
    """Return the severities of ``1,3,5``, each once, in the order given.

    Raises
    ------
    ValueError
        Anything but 1 to 5, separated by commas.
    """
    known = {str(severity): severity for severity in SEVERITIES}
    parts = [part.strip() for part in text.split(",")]
    wrong = [repr(part) for part in parts if part not in known]
    if wrong:
        raise ValueError(f"{option} {', '.join(wrong)}: give some of 1,2,3,4,5")
    return tuple(dict.fromkeys(known[part] for part in parts))
