"""Texts as people write them, checked before Postgres refuses them with an error of its own."""

from typing import Final

from tenants.base.errors import InvalidValue

MAX_REASON_CHARS: Final = 1_000


def is_storable(text: str) -> bool:
    """Postgres keeps neither NUL nor halves of surrogate pairs, which JSON can spell."""
    return "\0" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


def validate_text(field: str, text: str) -> None:
    """Raises Invalid."""
    if not is_storable(text):
        raise InvalidValue(field, "This text contains characters that are not allowed.")


def parse_reason(text: str) -> str:
    """Without blanks around it; may be empty. Raises Invalid."""
    validate_text("reason", text)
    if len(text.strip()) > MAX_REASON_CHARS:
        raise InvalidValue(
            "reason", "Enter a reason of at most {most} characters.", most=MAX_REASON_CHARS
        )
    return text.strip()
