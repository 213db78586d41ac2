"""What a policy says of a repository and a path: both planes ask here, so that they agree."""

import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase, translate
from functools import lru_cache
from typing import Final

from caret.contracts.policy import TenantPolicy

_Match = Callable[[str], re.Match[str] | None]
_WILD: Final = re.compile(r"[*?]")
_ANY_FOLDERS: Final = re.compile(r"//(?:\*\*//)+")


def is_excluded(policy: TenantPolicy, *, repository: str, path: str) -> bool:
    """Whether a glob for this repository, or for all ("*"), matches the path.

    `**/` matches no folder too: `**/.env` excludes `.env` at the root, as administrators expect.
    A `*` matches slashes as well. So slashes are doubled, and the two around `**` become one each:
    then `/*/` matches what stands between folders, or nothing.
    """
    doubled = _doubled_path(path)
    of = policy.content_exclusion
    return any(
        literal in doubled and matches(doubled) is not None
        for name in ("*", repository)
        for literal, matches in _compiled(of.get(name, ()))
    )


def excluding_globs(
    exclusion: Mapping[str, tuple[str, ...]], *, repository: str, path: str
) -> list[tuple[str, str]]:
    """Repository ("*" for all) and glob of each that excludes the path, for who asks why."""
    doubled = _doubled_path(path)
    return [
        (name, glob)
        for name in dict.fromkeys(("*", repository))
        for glob in exclusion.get(name, ())
        for literal, matches in _compiled((glob,))
        if literal in doubled and matches(doubled) is not None
    ]


def may_index(policy: TenantPolicy, *, repository: str) -> bool:
    """Whether the repository's files may be kept for retrieval. One without a name never: all such
    files of a tenant would be taken for one repository."""
    return bool(repository) and any(fnmatchcase(repository, glob) for glob in policy.retrieval)


@lru_cache(maxsize=1_024)
def _compiled(globs: tuple[str, ...]) -> tuple[tuple[str, _Match], ...]:
    """Once a policy and repository: it asks for each file of each request. With each glob the
    longest text that a path has to have, which spares most paths the expression."""
    doubled = map(_doubled, globs)
    return tuple((_literal(glob), re.compile(translate(glob)).match) for glob in doubled)


def _doubled_path(path: str) -> str:
    normal = path.replace("\\", "/").removeprefix("./").lstrip("/")
    return f"/{normal}".replace("/", "//")


def _literal(glob: str) -> str:
    return max(_WILD.split(glob.partition("[")[0]), key=len)


def _doubled(glob: str) -> str:
    return _ANY_FOLDERS.sub("/*/", f"/{glob.lstrip('/')}".replace("/", "//"))
