"""Where a text may be cut into lines so that their tokens are those of the whole.

Some tokenizers join a line break with what stands before it, others with the indentation after it.
Which are which is found out (see `tokens`); here is how each is cut. By hand: regular expressions
with a look behind take four times as long, and a new window is cut whenever a line was finished.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Seam:
    split: Callable[[str], list[str]]  # the lines, which together are the text; at least one
    last_start: Callable[[str], int]  # where the last of them begins
    first_end: Callable[[str], int]  # where the first of them ends


def _split_after_break(text: str) -> list[str]:
    """Cut behind a line break that no other one follows."""
    first, *rest = text.split("\n")
    lines = [first]
    for line in rest:
        if not line or line[0] == "\r":
            lines[-1] += f"\n{line}"
        else:
            lines[-1] += "\n"
            lines.append(line)
    return lines


def _last_start_after_break(text: str) -> int:
    end = len(text)
    while (found := text.rfind("\n", 0, end)) >= 0:
        if text[found + 1 : found + 2] not in ("", "\r", "\n"):
            return found + 1
        end = found
    return 0


def _first_end_after_break(text: str) -> int:
    found = -1
    while (found := text.find("\n", found + 1)) >= 0:
        if text[found + 1 : found + 2] not in ("", "\r", "\n"):
            return found + 1
    return len(text)


def _split_before_break(text: str) -> list[str]:
    """Cut before a line break that no white space precedes."""
    first, *rest = text.split("\n")
    lines = [first]
    for line in rest:
        last = lines[-1]
        if not last or last[-1].isspace():
            lines[-1] = f"{last}\n{line}"
        else:
            lines.append(f"\n{line}")
    return lines


def _last_start_before_break(text: str) -> int:
    end = len(text)
    while (found := text.rfind("\n", 0, end)) > 0:
        if not text[found - 1].isspace():
            return found
        end = found
    return 0


def _first_end_before_break(text: str) -> int:
    found = 0
    while (found := text.find("\n", found + 1)) >= 0:
        if not text[found - 1].isspace():
            return found
    return len(text)


AFTER_BREAK: Final = Seam(_split_after_break, _last_start_after_break, _first_end_after_break)
BEFORE_BREAK: Final = Seam(_split_before_break, _last_start_before_break, _first_end_before_break)
