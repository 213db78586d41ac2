"""Finds the API key: in the environment, in the system's keyring, or in a file. Stores a new one.

A key is never logged. A file that other users may read is ignored, because it is not a safe place
for a key.
"""

import logging
import stat
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

_VARIABLE: Final = "CARET_API_KEY"
_FILE_VARIABLE: Final = "CARET_API_KEY_FILE"
SERVICE: Final = "caret"  # service name in the keyring; the user name is the gateway's URL
FILE_NAME: Final = "key"  # in the configuration directory
_PERMISSIONS_OF_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_log = logging.getLogger(__name__)

AskKeyring = Callable[[str], str | None]  # called with the gateway's URL


def find_key(
    environment: Mapping[str, str], folder: Path, *, gateway_url: str, ask_keyring: AskKeyring
) -> str | None:
    """Return the API key; None if there is none, or only in a file that others can read."""
    key_file = environment.get(_FILE_VARIABLE)
    return (
        environment.get(_VARIABLE, "").strip()
        or (_read_key_file(Path(key_file)) if key_file else None)
        or ask_keyring(gateway_url)
        or _read_key_file(folder / FILE_NAME)
    )


def find_readable_key_file(environment: Mapping[str, str], folder: Path) -> Path | None:
    """Return the first key file that `find_key` ignores because other users can read it."""
    configured_path = environment.get(_FILE_VARIABLE)
    files = [*([Path(configured_path)] if configured_path else []), folder / FILE_NAME]
    return next((file for file in files if _is_open_to_others(file)), None)


def ask_keyring(gateway_url: str) -> str | None:
    """Return the key from the system's keyring, if the package `keyring` is installed and works."""
    try:
        import keyring
    except ImportError:
        return None
    try:
        password: str | None = keyring.get_password(SERVICE, gateway_url)
    except Exception as error:  # noqa: BLE001  # its backends raise any exception
        _log.info("key.no_keyring error=%s", type(error).__name__)
        return None
    return password


def store_key(folder: Path, *, gateway_url: str, key: str) -> None:
    """Store the key where `find_key` finds it: in the keyring, else in a file. Raises OSError."""
    try:
        import keyring

        keyring.set_password(SERVICE, gateway_url, key)
    except Exception as error:  # noqa: BLE001  # not installed, or its backends raise any exception
        _log.info("key.no_keyring error=%s", type(error).__name__)
    else:
        return
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = folder / FILE_NAME
    new_file = file.with_suffix(".new")
    new_file.unlink(missing_ok=True)
    new_file.touch(mode=0o600, exist_ok=False)
    new_file.write_text(f"{key}\n", encoding="utf-8")
    new_file.replace(file)


def _read_key_file(file: Path) -> str | None:
    try:
        if _is_open_to_others(file):
            _log.warning("key.file_open_to_others mode=%o", stat.S_IMODE(file.stat().st_mode))
            return None
        return file.read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _is_open_to_others(file: Path) -> bool:
    try:
        return sys.platform != "win32" and bool(file.stat().st_mode & _PERMISSIONS_OF_OTHERS)
    except OSError:
        return False
