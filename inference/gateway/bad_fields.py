"""Finds the name of an invalid field for an error message.

The field's value is never used, because it may be code.
"""

import re
from typing import Final

import msgspec

# The parts of msgspec's messages that name a field, as in "Object missing required field `content`
# - at `$.messages[0]`".
_PATH: Final = re.compile(r"at `\$\.?([\w.\[\]]*)`$")
_MISSING: Final = re.compile(r"missing required field `(\w+)`")


def name_bad_field(error: msgspec.ValidationError) -> str:
    """Return the path of the invalid field, such as `messages[0].content`; "" if it is unknown."""
    text = str(error)
    parent, missing = _PATH.search(text), _MISSING.search(text)
    names = [match[1] for match in (parent, missing) if match and match[1]]
    return ".".join(names)
