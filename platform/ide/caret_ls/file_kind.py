"""Detects secret and generated files, which are neither completed nor used as context.

The path and the first characters decide. The gateway rejects generated context files again, by
more rules, and redacts secrets in each prompt.
"""

import re
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Final


class FileKind(StrEnum):
    NORMAL = "normal"  # neither secret nor generated
    SECRET = "secret"  # noqa: S105  # not a password but a kind's name
    GENERATED = "generated"


# Names of files, without their folders.
_SECRET_NAME: Final = re.compile(
    r"""^\.env(\..*)?$ | \.env$ | ^\.?(netrc|pgpass|npmrc|pypirc|htpasswd|git-credentials)$
    | ^id_(rsa|dsa|ecdsa|ed25519) | \.(pem|key|p12|pfx|jks|keystore|kdbx|ppk|asc|gpg|age)$
    | ^(credentials|secrets?)(\.(json|ya?ml|toml|ini|env|txt))?$ | \.tfstate(\.backup)?$
    | ^service[-_]account.*\.json$ | ^terraform\.tfvars$""",
    re.VERBOSE | re.IGNORECASE,
)
# Examples, whose names look like those of secret files. Developers edit and share them, so they are
# completed like other files. If one contains an API key or a password, the gateway redacts it.
_EXAMPLE_NAME: Final = re.compile(r"^\.?env\.(example|sample|template|dist)$", re.IGNORECASE)
_SECRET_FOLDERS: Final = frozenset({".ssh", ".gnupg", ".aws", ".kube", ".docker"})
_SECRET_HEAD: Final = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY")
# Names of files that tools write or that hold no source text.
_GENERATED_NAME: Final = re.compile(
    r"""\.lock$ | ^(package-lock|npm-shrinkwrap)\.json$ | ^pnpm-lock\.yaml$ | ^go\.sum$
    | [.-]min\.(js|css|mjs)$ | \.(map|snap|svg|ipynb)$ | _pb2(_grpc)?\.pyi?$ | \.pb\.(go|cc|h)$
    | \.(g|freezed|generated|designer)\.\w+$ | _generated\.\w+$ | ^zz_generated""",
    re.VERBOSE | re.IGNORECASE,
)
_GENERATED_FOLDERS: Final = frozenset(
    {"node_modules", "bower_components", "site-packages", "__generated__", ".venv", ".git"}
)
_GENERATED_HEAD: Final = re.compile(
    r"@generated\b|\bdo not (edit|modify)\b|\b(auto-?|automatically |machine.)generated\b",
    re.IGNORECASE,
)
_HEAD_CHARS: Final = 2_000  # searched for private keys and for marks of generators
_MAX_LINE_CHARS: Final = 5_000  # people do not write longer lines


def detect_file_kind(path: str, head: str) -> FileKind:
    """Return the kind of a file; `head` is its text, or at least the first 2,000 characters."""
    *folders, name = PurePosixPath(path.replace("\\", "/")).parts or ("",)
    if _is_secret(name, folders, head):
        return FileKind.SECRET
    is_generated = (
        bool(_GENERATED_NAME.search(name))
        or not _GENERATED_FOLDERS.isdisjoint(folders)
        or bool(_GENERATED_HEAD.search(head, 0, _HEAD_CHARS))
        or any(len(line) > _MAX_LINE_CHARS for line in head.splitlines())
    )
    return FileKind.GENERATED if is_generated else FileKind.NORMAL


def _is_secret(name: str, folders: list[str], head: str) -> bool:
    return (
        bool(_SECRET_NAME.search(name) and not _EXAMPLE_NAME.search(name))
        or not _SECRET_FOLDERS.isdisjoint(folder.lower() for folder in folders)
        or bool(_SECRET_HEAD.search(head, 0, _HEAD_CHARS))
    )
