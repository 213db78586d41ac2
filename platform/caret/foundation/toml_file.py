"""An operator's file in TOML, checked against the struct that it should be."""

import tomllib
from pathlib import Path
from typing import TypeVar

import msgspec

from caret.foundation.environment import BadSetting

T = TypeVar("T")


def read_toml(path: Path, kind: type[T], *, setting: str) -> T:
    """Raises BadSetting, by the setting that named the file, the file, and the entry's place."""
    try:
        return msgspec.convert(tomllib.loads(path.read_text()), kind)
    except OSError as error:
        raise BadSetting(f"{setting}: {path} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeError, msgspec.ValidationError) as error:
        raise BadSetting(f"{setting}: {path}: {error}.") from error
