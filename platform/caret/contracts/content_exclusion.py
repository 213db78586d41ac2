"""Content exclusion rules and retrieval permissions of a policy, evaluated alike in both planes.

In paths and repository names, upper and lower case are equal (Unicode case folding), and so are
composed and decomposed letters. In paths, slash and backslash are also equal. Only the globs of
repositories that may be indexed are matched exactly, so that they never allow more than intended.
"""

import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase, translate
from functools import lru_cache
from typing import Final, TypeAlias
from unicodedata import normalize

from caret.contracts.policy import TenantPolicy

_Match: TypeAlias = Callable[[str], re.Match[str] | None]
_Exclusion: TypeAlias = Mapping[str, tuple[str, ...]]  # globs by repository name; "*": all
_WILD: Final = re.compile(r"[*?]")
_ANY_FOLDERS: Final = re.compile(r"//(?:\*\*//)+")
# re.IGNORECASE treats these two letters as an i; case folding does not.
_DOTTED_AND_DOTLESS_I: Final = str.maketrans("\u0130\u0131", "ii")


def is_excluded(policy: TenantPolicy, *, repository: str, path: str) -> bool:
    """Return whether a glob for this repository, or for all ("*"), matches the path.

    `**/` matches any number of folders, including none: `**/.env` also excludes `.env` at the root.
    For this, each slash in paths and globs is doubled, and `//**//` in a glob becomes `/*/`. As `*`
    also matches slashes, `/*/` matches `//` and `//any//folders//`.
    """
    exclusion = policy.content_exclusion
    names = exclusion_names(exclusion, repository)
    if not names:
        return False
    spellings = _list_spellings(_normalize_path(path))
    text = _fold_for_literals(spellings[0])  # the first spelling is the path in NFC
    return any(
        literal in text and any(map(matches, spellings))
        for name in names
        for literal, matches in _compile_globs(exclusion[name])
    )


def matching_globs(exclusion: _Exclusion, *, repository: str, path: str) -> list[tuple[str, str]]:
    """Return the globs that exclude the path, each as (repository name or "*" for all, glob)."""
    spellings = _list_spellings(_normalize_path(path))
    return [
        (name, glob)
        for name in exclusion_names(exclusion, repository)
        for glob in exclusion[name]
        for _, matches in _compile_globs((glob,))  # one matcher, from the cache
        if any(map(matches, spellings))
    ]


def exclusion_names(exclusion: _Exclusion, repository: str) -> tuple[str, ...]:
    """Return the repository names of the rules that apply to the repository, "*" first."""
    return _names_for(tuple(exclusion), repository)


def is_indexing_allowed(policy: TenantPolicy, *, repository: str) -> bool:
    """Return whether the repository's files may be stored for retrieval.

    Files without a repository name are never allowed, because retrieval would treat all of them as
    one repository.
    """
    return bool(repository) and any(fnmatchcase(repository, glob) for glob in policy.retrieval)


@lru_cache(maxsize=1_024)
def _names_for(names: tuple[str, ...], repository: str) -> tuple[str, ...]:
    folded_name = _fold_case(repository)
    matching_names = (name for name in names if name != "*" and _fold_case(name) == folded_name)
    return ("*", *matching_names) if "*" in names else tuple(matching_names)


@lru_cache(maxsize=1_024)
def _compile_globs(globs: tuple[str, ...]) -> tuple[tuple[str, _Match], ...]:
    """Return a literal text and a matcher for each glob. All matching paths contain the text.

    The result is cached, because all files of each request are checked. Most paths do not contain
    the literal text, so no regular expression is needed for them.
    """
    return tuple(_compile_glob(_double_slashes(glob)) for glob in globs)


def _compile_glob(glob: str) -> tuple[str, _Match]:
    expression = "|".join(map(translate, _list_spellings(glob)))
    return _longest_literal(glob), re.compile(expression, re.IGNORECASE).match


def _list_spellings(text: str) -> tuple[str, ...]:
    """Return the text in NFC, and also case-folded, so that `?` and `ss` both match `ß`."""
    if text.isascii():
        return (text,)
    return tuple(dict.fromkeys((normalize("NFC", text), _fold_case(text))))


def _fold_case(text: str) -> str:
    return normalize("NFC", normalize("NFD", text).casefold())


def _fold_for_literals(path: str) -> str:
    """Fold the path, so that it contains the literal text of each matching glob."""
    return path.translate(_DOTTED_AND_DOTLESS_I).casefold()


def _normalize_path(path: str) -> str:
    """Resolve `.` and `..`, and double each slash."""
    parts: list[str] = []
    for part in path.replace("\\", "/").split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "//" + "//".join(parts)


def _longest_literal(glob: str) -> str:
    """Return the longest literal text before a `[`, in lower case. Each matching path contains it.

    "": the glob has no such text, or the text is not ASCII and so may have several spellings.
    """
    longest = max(_WILD.split(glob.partition("[")[0]), key=len)
    return longest.lower() if longest.isascii() else ""


def _double_slashes(glob: str) -> str:
    """Convert a glob as described at `is_excluded`."""
    path = glob.replace("\\", "/").lstrip("/")
    return _ANY_FOLDERS.sub("/*/", f"/{path}".replace("/", "//"))
