"""Patterns of allowed hosts: networks, names, and names below a name.

10.12.0.0/16            each IP address in this network
engines.example.com     this name
*.engines.example.com   each name below engines.example.com, but not engines.example.com itself
"""

import ipaddress
import re
from collections.abc import Iterable
from typing import Final

_LABEL: Final = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"  # a DNS label has at most 63 characters
_NAME: Final = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_MAX_NAME_CHARS: Final = 253  # of a DNS name
_WILDCARD: Final = "*."


def require_pattern(text: str) -> None:
    """Check that the text is a pattern of one of the three kinds, or an IP address.

    Raises ValueError.
    """
    is_numeric = text.replace(".", "").isdigit()  # an IPv4 address, or a mistyped one
    if not is_numeric and _NAME.fullmatch(text.removeprefix(_WILDCARD)):
        return
    ipaddress.ip_network(text)  # raises ValueError unless it is a network or an IP address


def matches(host: str, patterns: Iterable[str]) -> bool:
    """Return whether a pattern matches the host.

    `host` is a name or an IP address. An IPv6 address has no brackets.
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        name = host.lower().rstrip(".")
        is_name = len(name) <= _MAX_NAME_CHARS and _NAME.fullmatch(name) is not None
        return is_name and any(_matches_name(name, pattern) for pattern in patterns)
    return any(address in network for network in _parse_networks(patterns))


def _matches_name(name: str, pattern: str) -> bool:
    if pattern.startswith(_WILDCARD):
        return name.endswith(pattern.removeprefix("*"))
    return name == pattern


def _parse_networks(
    patterns: Iterable[str],
) -> Iterable[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    for pattern in patterns:
        try:
            yield ipaddress.ip_network(pattern)
        except ValueError:  # a name, not a network
            continue
