"""Reasons of changes that Caret itself writes.

They are stored in English and shown in the reader's language.
"""

import re
from typing import Final

from django.utils.translation import gettext

_UNDO_REASON: Final = re.compile(r"Undo of version ([0-9]{1,10})\.")


def reason_of_undoing(version: int) -> str:
    return f"Undo of version {version}."


def translate_reason(reason: str) -> str:
    """Translate a reason that Caret wrote. Return the reason of a user unchanged."""
    match = _UNDO_REASON.fullmatch(reason)
    if match is None:
        return reason
    return gettext("Undo of version %(version)s.") % {"version": match[1]}
