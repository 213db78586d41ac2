"""What a policy says of a repository and a path. Both planes use this module, so that they agree.

Names are compared as file systems that ignore case do: without regard to letters' case (Unicode's
case folding), to composed or decomposed letters, and to `\\` or `/`. Repositories' names likewise.
The list of repositories that may be indexed is exact: there a mistake must not allow more.
"""

import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase, translate
from functools import lru_cache
from typing import Final, TypeAlias
from unicodedata import normalize

from caret.contracts.policy import TenantPolicy

_Match: TypeAlias = Callable[[str], re.Match[str] | None]
_Exclusion: TypeAlias = Mapping[str, tuple[str, ...]]
_WILD: Final = re.compile(r"[*?]")
_ANY_FOLDERS: Final = re.compile(r"//(?:\*\*//)+")
# re.IGNORECASE takes these two for an i; case folding does not.
_DOTTED_AND_DOTLESS_I: Final = str.maketrans("\u0130\u0131", "ii")


def is_excluded(policy: TenantPolicy, *, repository: str, path: str) -> bool:
    """Return whether a glob for this repository, or for all ("*"), matches the path.

    `**/` matches no folder too: `**/.env` excludes `.env` at the root, as administrators expect.
    A `*` matches slashes as well. So slashes are doubled, and the two around `**` become one each:
    then `/*/` matches what stands between folders, or nothing.
    """
    exclusion = policy.content_exclusion
    names = exclusion_names(exclusion, repository)
    if not names:
        return False
    spellings = _spellings(_doubled_path(path))
    text = _searched(spellings[0])
    return any(
        literal in text and any(map(matches, spellings))
        for name in names
        for literal, matches in _compiled(exclusion[name])
    )


def matching_globs(exclusion: _Exclusion, *, repository: str, path: str) -> list[tuple[str, str]]:
    """Return the name ("*" for all) and the glob of each rule that excludes the path."""
    spellings = _spellings(_doubled_path(path))
    return [
        (name, glob)
        for name in exclusion_names(exclusion, repository)
        for glob in exclusion[name]
        for _, matches in _compiled((glob,))
        if any(map(matches, spellings))
    ]


def exclusion_names(exclusion: _Exclusion, repository: str) -> tuple[str, ...]:
    """Return the names under which rules for this repository stand, "*" first."""
    return _names_for(tuple(exclusion), repository)


def is_indexing_allowed(policy: TenantPolicy, *, repository: str) -> bool:
    """Return whether the repository's files may be kept for retrieval. One without a name never:
    all such files of a tenant would be taken for one repository."""
    return bool(repository) and any(fnmatchcase(repository, glob) for glob in policy.retrieval)


@lru_cache(maxsize=1_024)
def _names_for(names: tuple[str, ...], repository: str) -> tuple[str, ...]:
    wanted = _folded(repository)
    named = (name for name in names if name != "*" and _folded(name) == wanted)
    return ("*", *named) if "*" in names else tuple(named)


@lru_cache(maxsize=1_024)
def _compiled(globs: tuple[str, ...]) -> tuple[tuple[str, _Match], ...]:
    """Once a policy and repository: it asks for each file of each request. With each glob the
    longest text that a path has to have, which spares most paths the expression."""
    return tuple(_compiled_one(_doubled(glob)) for glob in globs)


def _compiled_one(glob: str) -> tuple[str, _Match]:
    expression = "|".join(map(translate, _spellings(glob)))
    return _literal(glob), re.compile(expression, re.IGNORECASE).match


def _spellings(text: str) -> tuple[str, ...]:
    """Return the text as it is and case-folded: `\u00df` is matched by `?` and by `ss`."""
    if text.isascii():
        return (text,)
    return tuple(dict.fromkeys((normalize("NFC", text), _folded(text))))


def _folded(text: str) -> str:
    return normalize("NFC", normalize("NFD", text).casefold())


def _searched(path: str) -> str:
    """Return the path so that it holds the literal of each glob that matches it."""
    return path.translate(_DOTTED_AND_DOTLESS_I).casefold()


def _doubled_path(path: str) -> str:
    parts: list[str] = []
    for part in path.replace("\\", "/").split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "//" + "//".join(parts)


def _literal(glob: str) -> str:
    longest = max(_WILD.split(glob.partition("[")[0]), key=len)
    return longest.lower() if longest.isascii() else ""


def _doubled(glob: str) -> str:
    slashed = glob.replace("\\", "/").lstrip("/")
    return _ANY_FOLDERS.sub("/*/", f"/{slashed}".replace("/", "//"))
