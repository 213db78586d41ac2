"""The user's settings, from the editor, the environment and `~/.config/caret/config.toml`.

If several of these sources have a setting, the first of them in this order applies. The file
`installation.json` has defaults for the URLs: `platform/scripts/build_clients` writes it into the
copies of this language server that users download from the console.

The editor and `config.toml` use the names of the fields of `Settings`. The environment uses
CARET_GATEWAY_URL, CARET_CONSOLE_URL, and for the others CARET_LS_ and the name in upper case.
Invalid values are ignored, because the server must start even with invalid settings.
"""

import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

DEFAULT_GATEWAY_URL: Final = "http://127.0.0.1:8401"
DEFAULT_CONSOLE_URL: Final = "http://127.0.0.1:8400"
_PREFIX: Final = "CARET_LS_"
_URL_VARIABLES: Final = {"gateway_url": "CARET_GATEWAY_URL", "console_url": "CARET_CONSOLE_URL"}
_TRUTHS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
MAX_DEBOUNCE_MS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Settings:
    gateway_url: str = DEFAULT_GATEWAY_URL
    console_url: str = DEFAULT_CONSOLE_URL  # where the user signs in
    # Shortest wait after a keystroke. With the default or a smaller value, there is no wait at all
    # while responses are fast and the allowance of requests is not used up (rule 5 of `debounce`).
    debounce_ms: int = 75
    complete_in_comments: bool = False  # suggest automatically in comments
    complete_in_strings: bool = True
    disabled_languages: tuple[str, ...] = ()  # language IDs of editors, in lower case
    # Globs of paths that are never sent, in addition to those of the tenant's policy.
    excluded_globs: tuple[str, ...] = ()
    enabled: bool = True  # suggest automatically
    prefetch: bool = True  # request the continuation while a suggestion is visible
    definitions: bool = True  # send definitions of the symbols at the cursor
    next_edit: bool = True  # suggest edits near the cursor and away from it
    # Send the edited text of accepted suggestions (platform/docs/content-capture.md).
    share_accepted_text: bool = False


def has_capability(experimental: object, name: str) -> bool:
    """Return whether the editor declares an experimental capability.

    `experimental` is any JSON value, as pygls decodes it.
    """
    if isinstance(experimental, dict):
        return experimental.get(name) is True
    return getattr(experimental, name, None) is True  # pygls' object for unknown JSON


def config_folder(environment: Mapping[str, str] = os.environ) -> Path:
    home = environment.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path.home() / ".config") / "caret"


def read_settings(
    environment: Mapping[str, str], file: Path, editor: object
) -> tuple[Settings, list[str]]:
    """Return the settings, and the names of invalid ones (or the path of an invalid file).

    `file` is `config.toml`, `editor` any JSON value from the editor.
    """
    from_editor = editor if isinstance(editor, dict) else {}
    from_file, problems = _from_file(file)
    values: dict[str, Any] = {}
    # A later source overrides the earlier ones.
    for source in (_from_installation(), from_file, _from_environment(environment), from_editor):
        for field in fields(Settings):
            if source.get(field.name) is None:
                continue
            try:
                values[field.name] = _READERS[field.name](source[field.name])
            except (ValueError, TypeError):
                problems.append(field.name)
    return Settings(**values), problems


def _from_installation() -> dict[str, Any]:
    try:
        values: dict[str, Any] = json.loads((files("caret_ls") / "installation.json").read_bytes())
    except FileNotFoundError:
        return {}
    return values


def _from_file(file: Path) -> tuple[dict[str, Any], list[str]]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8")), []
    except FileNotFoundError:
        return {}, []
    except (OSError, ValueError):  # ValueError includes syntax errors
        return {}, [str(file)]


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    variables = {field.name: _PREFIX + field.name.upper() for field in fields(Settings)}
    variables |= _URL_VARIABLES
    return {
        name: environment[variable]
        for name, variable in variables.items()
        if variable in environment
    }


def _read_url(value: object) -> str:
    text = str(value).rstrip("/")
    if not text.startswith(("http://", "https://")):
        raise ValueError
    return text


def _read_bool(value: object) -> bool:
    if isinstance(value, bool):
        return value
    try:
        return _TRUTHS[str(value).lower()]
    except KeyError:
        raise ValueError from None


def _read_texts(value: object) -> tuple[str, ...]:
    """Return the strings of a list, or of a text with commas between them."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if not isinstance(value, Sequence) or not all(isinstance(item, str) for item in value):
        raise ValueError
    return tuple(value)


def _read_languages(value: object) -> tuple[str, ...]:
    """Return language IDs in lower case, because the skip rules compare them in lower case."""
    return tuple(language.lower() for language in _read_texts(value))


def _read_debounce_ms(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError
    number = int(value)
    if not 0 <= number <= MAX_DEBOUNCE_MS:
        raise ValueError
    return number


# Functions that convert a value; they raise ValueError or TypeError if it is invalid.
_READERS: Final = {
    "gateway_url": _read_url,
    "console_url": _read_url,
    "debounce_ms": _read_debounce_ms,
    "complete_in_comments": _read_bool,
    "complete_in_strings": _read_bool,
    "disabled_languages": _read_languages,
    "excluded_globs": _read_texts,
    "enabled": _read_bool,
    "prefetch": _read_bool,
    "definitions": _read_bool,
    "next_edit": _read_bool,
    "share_accepted_text": _read_bool,
}
