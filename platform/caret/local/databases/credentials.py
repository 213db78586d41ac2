"""Random secrets of the local installation, written once and never changed.

The URLs of its databases are written beside them at every start, because they contain the folder of
the sockets, which depends on CARET_HOME.
"""

import os
import secrets
from pathlib import Path
from urllib.parse import quote

from caret.local.paths import EmbeddedPaths, make_folders

SUPERUSER = "caret_superuser"
OWNER_ROLE = "caret_owner"
APP_ROLE = "caret_app"
DATABASE = "caret"
VALKEY = "valkey"
KV_STORE = "kv-store"  # the Valkey server of the KV tier


def write_credentials(paths: EmbeddedPaths) -> None:
    """Write missing secrets, and the URLs. No service needs to run."""
    make_folders(paths)
    _write_if_missing(paths.root_secret, secrets.token_hex(32))
    for holder in (SUPERUSER, OWNER_ROLE, APP_ROLE, VALKEY, KV_STORE):
        _write_if_missing(_password_file(paths, holder), secrets.token_urlsafe(32))
    _write_private(paths.app_database_url, _database_url(paths, APP_ROLE))
    _write_private(paths.owner_database_url, _database_url(paths, OWNER_ROLE))
    _write_private(paths.redis_url, valkey_url(paths, VALKEY))


def read_password(paths: EmbeddedPaths, holder: str) -> str:
    """Return the password of a database role or a Valkey server."""
    return _password_file(paths, holder).read_text().strip()


def valkey_socket(paths: EmbeddedPaths, server: str) -> Path:
    return paths.sockets / f"{server}.sock"


def valkey_url(paths: EmbeddedPaths, server: str) -> str:
    return f"unix://:{read_password(paths, server)}@{valkey_socket(paths, server)}?db=0"


def _password_file(paths: EmbeddedPaths, holder: str) -> Path:
    return paths.secrets / f"password-{holder}"


def _database_url(paths: EmbeddedPaths, role: str) -> str:
    folder = quote(str(paths.sockets), safe="")
    return f"postgresql://{role}:{read_password(paths, role)}@/{DATABASE}?host={folder}"


def _write_if_missing(file: Path, secret: str) -> None:
    if not file.exists():
        _write_private(file, secret)


def _write_private(file: Path, secret: str) -> None:
    """Write a file atomically; other users can never read it, not even for a moment."""
    if file.exists() and file.read_text() == secret + "\n":
        return
    draft = file.with_name(file.name + ".new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(secret + "\n")
    draft.replace(file)
