"""Names of invalid fields in error messages. Never their values: a value may be code."""

import re
from typing import Final

import msgspec

_PATH: Final = re.compile(r"at `\$\.?([\w.\[\]]*)`$")
_MISSING: Final = re.compile(r"missing required field `(\w+)`")


def name_bad_field(error: msgspec.ValidationError) -> str:
    """Return the field's path, such as `messages[0].content`; "" if unknown."""
    text = str(error)
    parent, missing = _PATH.search(text), _MISSING.search(text)
    path = [match[1] for match in (parent, missing) if match and match[1]]
    return ".".join(path)
