"""Validation of the address of a sink.

At delivery, `caret.foundation.egress.egress_policy` decides whether a connection is allowed.
"""

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final
from urllib.parse import SplitResult, urlsplit

from caret.foundation.egress.egress_policy import is_allowed
from caret.foundation.special_addresses import Network
from tenants.base.errors import InvalidValue

MAX_CHARS: Final = 1_000  # of an address
_MAX_HOST_CHARS: Final = 253  # the limit of DNS
_LABEL: Final = re.compile(r"[a-z0-9_-]{1,63}")  # a part of a host name, as DNS can look it up
_FIELD: Final = "address"  # InvalidValue.field


class SinkKind(StrEnum):
    WEBHOOK = "webhook"
    SYSLOG = "syslog"


@dataclass(frozen=True, slots=True)
class _Scheme:
    kind: SinkKind
    is_encrypted: bool
    port: int  # the default port


_SCHEMES: Final = MappingProxyType(
    {
        "https": _Scheme(SinkKind.WEBHOOK, is_encrypted=True, port=443),
        "http": _Scheme(SinkKind.WEBHOOK, is_encrypted=False, port=80),
        "syslog+tls": _Scheme(SinkKind.SYSLOG, is_encrypted=True, port=6514),  # RFC 5425
        # The port of RFC 3195, commonly used for plain syslog over TCP.
        "syslog+tcp": _Scheme(SinkKind.SYSLOG, is_encrypted=False, port=601),
    }
)


@dataclass(frozen=True, slots=True)
class SinkAddress:
    text: str = field(repr=False)  # not in repr: a webhook's path may contain a secret
    kind: SinkKind
    host: str  # a host name or an IP address, without brackets
    port: int
    is_encrypted: bool

    @property
    def origin(self) -> str:
        """The scheme, host and port."""
        return f"{self.text.partition(':')[0]}://{_add_brackets(self.host)}:{self.port}"


def parse_address(text: str, networks: Sequence[Network]) -> SinkAddress:
    """Parse the address of a sink. `networks` are the private networks that the operator allows.

    An IP address that delivery would refuse is rejected here. A host name is checked at delivery.
    Without `networks`, the address must be encrypted. Raises InvalidValue.
    """
    address = _parse_address(text)
    if not address.is_encrypted and not networks:
        raise InvalidValue(_FIELD, "Enter an address that starts with https:// or syslog+tls://.")
    try:
        is_permitted = is_allowed(address.host, networks, is_encrypted=address.is_encrypted)
    except ValueError:
        return address  # a host name
    if not is_permitted:
        raise InvalidValue(
            _FIELD, "This address is neither public nor in one of the operator's allowed networks."
        )
    return address


def _parse_address(text: str) -> SinkAddress:
    if len(text) > MAX_CHARS or not text.isascii() or not text.isprintable() or " " in text:
        raise InvalidValue(
            _FIELD,
            "Enter an address of at most {most} ASCII characters, without spaces.",
            most=MAX_CHARS,
        )
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise InvalidValue(_FIELD, "This is not a valid address.") from error
    scheme = _SCHEMES.get(parts.scheme)
    # `urlsplit` also accepts a scheme in upper case, or without slashes.
    if scheme is None or not text.startswith(f"{parts.scheme}://"):
        raise InvalidValue(
            _FIELD, "Enter one of {choices}.", choices=", ".join(f"{name}://" for name in _SCHEMES)
        )
    host = _read_host(parts)
    if scheme.kind is SinkKind.SYSLOG and (parts.path or parts.query):
        raise InvalidValue(_FIELD, "A syslog address contains only a host and a port.")
    return SinkAddress(text, scheme.kind, host, port or scheme.port, scheme.is_encrypted)


def _read_host(parts: SplitResult) -> str:
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise InvalidValue(
            _FIELD, "The address must not contain a user name, a password or a fragment."
        )
    host = parts.hostname or ""
    if not 1 <= len(host) <= _MAX_HOST_CHARS or not _is_host(host):
        raise InvalidValue(_FIELD, "The address has no valid host.")
    return host


def _is_host(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return all(map(_LABEL.fullmatch, text.removesuffix(".").split(".")))
    return "%" not in text  # an IPv6 zone names an interface of one machine


def _add_brackets(host: str) -> str:
    return f"[{host}]" if ":" in host else host
