"""The difference between two JSON values, as lines for people. No program parses these lines."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

_MAX_CHARS: Final = 2_000  # of one value


@dataclass(frozen=True, slots=True)
class DiffLine:
    sign: str  # "+" or "-"
    text: str  # "path: value", such as `limits.days: 30`; without a path, only the value

    @property
    def is_added(self) -> bool:
        return self.sign == "+"


def diff_lines(before: Any, after: Any) -> list[DiffLine]:
    """Return the removed and added lines, sorted by path. Equal values have no line."""
    old, new = dict(_flatten(before)), dict(_flatten(after))
    lines = []
    for path in sorted({**old, **new}):
        if old.get(path) == new.get(path):
            continue
        if path in old:
            lines.append(DiffLine("-", _format_line(path, old[path])))
        if path in new:
            lines.append(DiffLine("+", _format_line(path, new[path])))
    return lines


def _flatten(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield path and JSON of each value that is not an object, or is an empty object.

    A list counts as one value. If `value` as a whole is None, nothing is yielded.
    """
    if isinstance(value, Mapping) and value:
        for name, part in value.items():
            yield from _flatten(part, f"{path}.{name}" if path else str(name))
    elif value is not None or path:
        yield path, json.dumps(value, ensure_ascii=False)


def _format_line(path: str, value: str) -> str:
    short_value = value if len(value) <= _MAX_CHARS else f"{value[:_MAX_CHARS]}…"
    return f"{path}: {short_value}" if path else short_value
