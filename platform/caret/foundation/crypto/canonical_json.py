"""Canonical JSON (RFC 8785) for data that is hashed or signed.

RFC 8785 has only JavaScript's numbers. `to_exact_numbers` makes a value's canonical form the same
before and after storage as jsonb. Postgres stores 1e22 as an integer, and JavaScript would read an
integer beyond 2**53 as another number. So such numbers become strings.
"""

from decimal import Decimal
from typing import Any, Final

import rfc8785

_MAX_INTEGER: Final = 2**53 - 1


def canonicalize(document: dict[str, Any]) -> bytes:
    """Return the canonical JSON.

    Raises ValueError for values that RFC 8785 cannot represent (see `to_exact_numbers`).
    """
    return rfc8785.dumps(document)


def to_exact_numbers(value: Any) -> Any:
    """Return the value with only numbers that RFC 8785 can represent; idempotent."""
    if isinstance(value, dict):
        return {str(key): to_exact_numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_exact_numbers(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        value = int(Decimal(repr(value)))  # the digits as written, not those of the double
    if isinstance(value, int) and not -_MAX_INTEGER <= value <= _MAX_INTEGER:
        return str(value)
    return value
