"""Matches content exclusion globs of a policy with paths, in the same way as the gateway.

The gateway's module, caret.contracts.content_exclusion, explains the rules. This package cannot
import that module. Tests check both modules with the same table of cases.
"""

import re
from collections.abc import Iterable
from fnmatch import translate
from functools import lru_cache
from typing import Final
from unicodedata import normalize

_ANY_FOLDERS: Final = re.compile(r"//(?:\*\*//)+")


def is_excluded(path: str, globs: Iterable[str]) -> bool:
    """Return whether a glob matches the path.

    `**/` matches any number of folders, including none: `src/**/a.py` also matches `src/a.py`. For
    this, each slash in path and globs is doubled, and `//**//` in a glob becomes `/*/`. As `*` also
    matches slashes, `/*/` matches `//` and `//any//folders//`.
    """
    spellings = _path_spellings(_doubled_path(path))
    return any(_compile_glob(glob).match(spelling) for glob in globs for spelling in spellings)


@lru_cache(maxsize=1_024)
def _compile_glob(glob: str) -> re.Pattern[str]:
    path = glob.replace("\\", "/").lstrip("/")
    pattern = _ANY_FOLDERS.sub("/*/", f"/{path}".replace("/", "//"))
    return re.compile("|".join(map(translate, _path_spellings(pattern))), re.IGNORECASE)


def _path_spellings(text: str) -> tuple[str, ...]:
    """Return a path or glob in Unicode's NFC, and case-folded: both `?` and `ss` match `ß`."""
    if text.isascii():
        return (text,)
    folded = normalize("NFC", normalize("NFD", text).casefold())
    return tuple(dict.fromkeys((normalize("NFC", text), folded)))


def _doubled_path(path: str) -> str:
    """Return the path with `.` and `..` resolved, and each slash doubled."""
    parts: list[str] = []
    for part in path.replace("\\", "/").split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "//" + "//".join(parts)
