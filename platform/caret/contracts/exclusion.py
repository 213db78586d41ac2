"""What a policy says of a repository and a path: both planes ask here, so that they agree."""

import re
from fnmatch import fnmatchcase
from typing import Final

from caret.contracts.policy import TenantPolicy

_ANY_FOLDERS: Final = re.compile(r"//(?:\*\*//)+")


def is_excluded(policy: TenantPolicy, *, repository: str, path: str) -> bool:
    """Whether a glob for this repository, or for all ("*"), matches the path.

    `**/` matches no folder too: `**/.env` excludes `.env` at the root, as administrators expect.
    A `*` matches slashes as well. So slashes are doubled, and the two around `**` become one each:
    then `/*/` matches what stands between folders, or nothing.
    """
    globs = (*policy.content_exclusion.get("*", ()), *policy.content_exclusion.get(repository, ()))
    normal = path.replace("\\", "/").removeprefix("./").lstrip("/")
    doubled = f"/{normal}".replace("/", "//")
    return any(fnmatchcase(doubled, _doubled(glob)) for glob in globs)


def may_index(policy: TenantPolicy, *, repository: str) -> bool:
    """Whether the repository's files may be kept for retrieval. One without a name never: all such
    files of a tenant would be taken for one repository."""
    return bool(repository) and any(fnmatchcase(repository, glob) for glob in policy.retrieval)


def _doubled(glob: str) -> str:
    return _ANY_FOLDERS.sub("/*/", f"/{glob.lstrip('/')}".replace("/", "//"))
