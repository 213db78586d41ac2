"""Finds the API key: in the environment, in the system's keyring, or in a file. Stores a new key.

A key is never logged. Except on Windows, a file is ignored if other users have permissions for it,
because it is not a safe place for a key.
"""

import logging
import stat
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

_KEY_VARIABLE: Final = "CARET_API_KEY"
_FILE_VARIABLE: Final = "CARET_API_KEY_FILE"
SERVICE: Final = "caret"  # service name in the keyring; the name of the user is the gateway's URL
FILE_NAME: Final = "key"  # in the configuration directory
_PERMISSIONS_OF_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO  # the file's group, and all others
_log = logging.getLogger(__name__)

AskKeyring = Callable[[str], str | None]  # gets the gateway's URL, and returns the API key


def find_key(
    environment: Mapping[str, str], folder: Path, *, gateway_url: str, ask_keyring: AskKeyring
) -> str | None:
    """Return the API key; None if there is none that can be used.

    It is looked for in the variable CARET_API_KEY, in the file that CARET_API_KEY_FILE names, in
    the keyring, and in the configuration directory `folder`. The first one found is returned.
    """
    key_file = environment.get(_FILE_VARIABLE)
    return (
        environment.get(_KEY_VARIABLE, "").strip()
        or (_read_key_file(Path(key_file)) if key_file else None)
        or ask_keyring(gateway_url)
        or _read_key_file(folder / FILE_NAME)
    )


def find_key_file_open_to_others(environment: Mapping[str, str], folder: Path) -> Path | None:
    """Return the first key file that is ignored because others have permissions for it.

    None: there is no such file.
    """
    configured_path = environment.get(_FILE_VARIABLE)
    files = [*([Path(configured_path)] if configured_path else []), folder / FILE_NAME]
    return next((file for file in files if _is_open_to_others(file)), None)


def ask_keyring(gateway_url: str) -> str | None:
    """Return the key from the system's keyring.

    None: there is no key in it, or the package `keyring` is not installed or does not work.
    """
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
    """Store the key in the keyring, or else in a file of `folder`. Raises OSError."""
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
