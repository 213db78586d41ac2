"""Whether a glob of a policy matches a path: as the gateway decides it (caret.contracts.exclusion,
which this package cannot import; a test keeps the two equal)."""

import re
from collections.abc import Iterable
from fnmatch import translate
from functools import lru_cache
from typing import Final

_ANY_FOLDERS: Final = re.compile(r"//(?:\*\*//)+")


def is_excluded(path: str, globs: Iterable[str]) -> bool:
    """Slashes are doubled, and the two around `**` become one each: so `**/` matches no folder,
    too."""
    normal = path.replace("\\", "/").removeprefix("./").lstrip("/")
    doubled = f"/{normal}".replace("/", "//")
    return any(_compiled(glob).match(doubled) for glob in globs)


@lru_cache(maxsize=1_024)
def _compiled(glob: str) -> re.Pattern[str]:
    doubled = f"/{glob.lstrip('/')}".replace("/", "//")
    return re.compile(translate(_ANY_FOLDERS.sub("/*/", doubled)))
