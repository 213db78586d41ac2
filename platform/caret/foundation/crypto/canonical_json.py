"""Canonical JSON (RFC 8785) for data that is hashed or signed.

RFC 8785 has only JavaScript's numbers, which are exact only for integers below 2**53. Postgres can
return a number of a jsonb value in another form: 1e22 becomes an integer. `to_exact_numbers` turns
integers from 2**53 on into strings. So a value has the same canonical form before and after
storage.
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
    """Return the value with integral floats as integers, and integers from 2**53 on as strings.

    Keys of objects become strings, and tuples become lists. NaN and infinity stay, and
    `canonicalize` rejects them. A second call changes nothing.
    """
    if isinstance(value, dict):
        return {str(key): to_exact_numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_exact_numbers(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        value = int(Decimal(repr(value)))  # int(1e23) would be 99999999999999991611392
    if isinstance(value, int) and not -_MAX_INTEGER <= value <= _MAX_INTEGER:
        return str(value)
    return value
