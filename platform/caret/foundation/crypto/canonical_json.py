"""JSON in one spelling, for what is hashed or signed: RFC 8785, by its own library.

RFC 8785 knows the numbers of JavaScript only. `exact` turns a value into one that has the same
spelling before it was stored as jsonb and after: Postgres keeps 1e22 as an integer, and an integer
beyond 2**53 would be another one to who reads it in JavaScript, so such numbers become texts.
"""

from decimal import Decimal
from typing import Any, Final

import rfc8785

_MAX_INTEGER: Final = 2**53 - 1


def canonicalize(document: dict[str, Any]) -> bytes:
    """Raises ValueError for what RFC 8785 cannot spell: see `exact`."""
    return rfc8785.dumps(document)


def to_exact_numbers(value: Any) -> Any:
    """The same in the numbers that RFC 8785 knows; a second time changes nothing."""
    if isinstance(value, dict):
        return {str(key): to_exact_numbers(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_exact_numbers(each) for each in value]
    if isinstance(value, float) and value.is_integer():
        value = int(Decimal(repr(value)))  # the digits that were written, not those of the double
    if isinstance(value, int) and not -_MAX_INTEGER <= value <= _MAX_INTEGER:
        return str(value)
    return value
