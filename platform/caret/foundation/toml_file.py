"""Operators' TOML files, checked against a struct."""

import tomllib
from pathlib import Path
from typing import TypeVar

import msgspec

from caret.foundation.environment import BadSetting

T = TypeVar("T")


def read_toml(path: Path, kind: type[T], *, setting: str) -> T:
    """Read a TOML file. `kind` is the struct that it must match.

    `setting` is the environment variable in which the operator has set the path. Raises BadSetting,
    whose message contains the setting, the file and the invalid entry.
    """
    try:
        return msgspec.convert(tomllib.loads(path.read_text()), kind)
    except OSError as error:
        raise BadSetting(f"{setting}: {path} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeError, msgspec.ValidationError) as error:
        raise BadSetting(f"{setting}: {path}: {error}.") from error
