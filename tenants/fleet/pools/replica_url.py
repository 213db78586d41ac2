"""Validation of engine addresses that operators enter."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import SplitResult, urlsplit

from django.utils.translation import gettext_noop

from caret.foundation.egress.host_patterns import matches
from tenants.base.errors import InvalidValue

_MAX_CHARS: Final = 255


def parse_engine_url(text: str, allowed: Sequence[str]) -> str:
    """Return an engine's URL without a trailing slash.

    `allowed` are networks and host names in the format of host_patterns. Raises InvalidValue.
    """
    parts = _split_url(text, "url")
    ends_after_port = parts.path in ("", "/") and not (parts.query or parts.fragment)
    if parts.scheme not in ("http", "https") or not ends_after_port:
        raise InvalidValue("url", 'Enter an address such as "http://10.12.0.7:8000".')
    _require_allowed_host(parts, "url", allowed)
    return f"{parts.scheme}://{_format_address(parts)}"


def parse_kv_events_address(text: str, allowed: Sequence[str]) -> str:
    """Return the address of KV events, or "" for a blank text. Raises InvalidValue."""
    if not text.strip():
        return ""
    parts = _split_url(text, "kv_events")
    if parts.scheme != "tcp" or parts.port is None or parts.path or parts.query:
        raise InvalidValue("kv_events", 'Enter an address such as "tcp://10.12.0.7:5557".')
    _require_allowed_host(parts, "kv_events", allowed)
    return f"tcp://{_format_address(parts)}"


def _format_address(parts: SplitResult) -> str:
    """Return the canonical form of host and port, which identifies a replica."""
    host = parts.hostname or ""
    address = f"[{host}]" if ":" in host else host
    return address if parts.port is None else f"{address}:{parts.port}"


def _split_url(text: str, field: str) -> SplitResult:
    """Split a URL.

    Raises InvalidValue if it is too long, has no host or an invalid port, or contains a space, "@",
    or a character other than printable ASCII.
    """
    try:
        parts = urlsplit(text.strip())
        _ = parts.port  # raises ValueError if it is not a number up to 65535
    except ValueError as error:
        raise InvalidValue(field, "This is not a valid address.") from error
    stripped = text.strip()
    is_printable_ascii = stripped.isascii() and stripped.isprintable()
    has_allowed_chars = is_printable_ascii and " " not in stripped and "@" not in stripped
    if not parts.hostname or parts.port == 0 or not has_allowed_chars or len(text) > _MAX_CHARS:
        raise InvalidValue(field, "This is not a valid address.")
    return parts


def _require_allowed_host(parts: SplitResult, field: str, allowed: Sequence[str]) -> None:
    if not matches(parts.hostname or "", allowed):
        allowed_hosts = ", ".join(allowed)
        raise InvalidValue(
            field,
            gettext_noop("The pools file allows replicas only in {places}."),
            places=allowed_hosts,
        )
