"""Matches content exclusion globs of a policy with paths, in the same way as the gateway.

This package cannot import the gateway's module (caret.contracts.content_exclusion), which explains
the rules. Tests check both with the same table of cases.
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

    They are compared with every slash doubled. In the glob, `//**//` becomes `/*/`, so that `**/`
    matches any number of folders, including none.
    """
    spellings = _path_spellings(_doubled_path(path))
    return any(_compile_glob(glob).match(spelling) for glob in globs for spelling in spellings)


@lru_cache(maxsize=1_024)
def _compile_glob(glob: str) -> re.Pattern[str]:
    path = glob.replace("\\", "/").lstrip("/")
    pattern = _ANY_FOLDERS.sub("/*/", f"/{path}".replace("/", "//"))
    return re.compile("|".join(map(translate, _path_spellings(pattern))), re.IGNORECASE)


def _path_spellings(text: str) -> tuple[str, ...]:
    """Return the text in NFC, and case-folded: `ß` is matched by `?` and by `ss`."""
    if text.isascii():
        return (text,)
    folded = normalize("NFC", normalize("NFD", text).casefold())
    return tuple(dict.fromkeys((normalize("NFC", text), folded)))


def _doubled_path(path: str) -> str:
    parts: list[str] = []
    for part in path.replace("\\", "/").split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "//" + "//".join(parts)
