"""Validation of texts from users.

Without validation, Postgres would refuse some texts with an error that users do not understand.
"""

from typing import Final

from tenants.base.errors import InvalidValue

MAX_REASON_CHARS: Final = 1_000  # of the reason that a user gives for a change


def is_storable(text: str) -> bool:
    """Return whether Postgres can store the text.

    Postgres stores neither NUL nor unpaired surrogates, although JSON can contain both.
    """
    return "\0" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


def validate_text(field: str, text: str) -> None:
    """Check that Postgres can store the text. `field` names it. Raises InvalidValue."""
    if not is_storable(text):
        raise InvalidValue(field, "This text contains characters that are not allowed.")


def validate_printable(field: str, text: str) -> None:
    """Check that people can see each character of a one-line text. Raises InvalidValue.

    Postgres can store each text that passes.
    """
    if not text.isprintable():
        raise InvalidValue(field, "Remove invisible characters, such as tabs and line breaks.")


def parse_reason(text: str) -> str:
    """Return the reason without surrounding whitespace; it may be empty. Raises InvalidValue."""
    validate_text("reason", text)
    if len(text.strip()) > MAX_REASON_CHARS:
        raise InvalidValue(
            "reason", "Enter a reason of at most {most} characters.", most=MAX_REASON_CHARS
        )
    return text.strip()


def require_reason(text: str) -> str:
    """Return the reason, which must not be empty. Raises InvalidValue."""
    reason = parse_reason(text)
    if not reason:
        raise InvalidValue(
            "reason", "Enter a reason of 1 to {most} characters.", most=MAX_REASON_CHARS
        )
    return reason
