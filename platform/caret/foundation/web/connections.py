"""Which connections of a server may stay: a bound in all, and bounds for unauthenticated ones.

A connection is unauthenticated until the application has verified a credential on it. It is waiting
while no request of it is being answered: its headers have not come, or it is idle between two
requests. When a bound is reached, the connection that has waited longest is closed in favour of the
new one. Headers of a well-behaved client come within milliseconds, so that connections which send
theirs slowly go first. If no connection waits, the new one is refused.

Behind a trusted proxy a connection is the proxy's, and carries the requests of many clients. There
each unauthenticated request counts for the address that the proxy forwards.
"""

from collections.abc import Callable, MutableMapping
from ipaddress import IPv6Address, ip_address
from typing import Any, Final

from prometheus_client import Counter, Gauge

from caret.foundation.web.server_limits import ServerLimits

_IPV6_NETWORK_BITS: Final = 64

# `reason` names the limit; each process registers these at its own registry.
REFUSED: Final = Counter(
    "caret_http_refused",
    "Requests and connections that a limit of the HTTP server ended, by limit.",
    ["reason"],
    registry=None,
)
CONNECTIONS: Final = Gauge("caret_http_connections", "Open client connections.", registry=None)
UNAUTHENTICATED: Final = Gauge(
    "caret_http_unauthenticated_connections",
    "Open client connections on which no credential was verified.",
    registry=None,
)
METRICS: Final = (REFUSED, CONNECTIONS, UNAUTHENTICATED)


class TooManyConnections(Exception):
    """A bound is reached, and no connection waits that could be closed instead."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason  # label of REFUSED


class Slot:
    """One connection in the bounds, or one request that came through a trusted proxy."""

    __slots__ = (
        "_connections",
        "address",
        "close",
        "is_authenticated",
        "is_released",
        "is_request",
    )

    def __init__(
        self, connections: "Connections", address: str | None, close: Callable[[], None] | None
    ) -> None:
        self._connections = connections
        self.address = address  # None: not counted by address
        self.close = close  # None: a request behind a proxy, which is never closed for another
        self.is_request = close is None
        self.is_authenticated = address is None
        self.is_released = False

    def begin_request(self) -> None:
        """Headers have come: the connection is not waiting any more."""
        if not self.is_authenticated:
            self._connections.stop_waiting(self)

    def end_request(self) -> None:
        """The response has ended: the connection waits for its next request."""
        if not self.is_authenticated and not self.is_released:
            self._connections.start_waiting(self)

    def authenticate(self) -> None:
        """A credential was verified: the bounds for unauthenticated connections do not apply."""
        if not self.is_authenticated and not self.is_released:
            self._connections.forget_unauthenticated(self)
            self.is_authenticated = True

    def release(self) -> None:
        """The connection is closed. May be called repeatedly."""
        if not self.is_released:
            self.is_released = True
            self._connections.forget(self)


class _Group:
    """The unauthenticated slots of one address, or of all."""

    __slots__ = ("num", "waiting")

    def __init__(self) -> None:
        self.num = 0
        self.waiting: dict[Slot, None] = {}  # longest first


class Connections:
    """All connections of one server. Used by one event loop, needs no lock."""

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        self._num = 0
        self._unauthenticated = _Group()
        self._by_address: dict[str, _Group] = {}
        CONNECTIONS.set_function(lambda: self._num)
        UNAUTHENTICATED.set_function(lambda: self._unauthenticated.num)

    def admit(self, address: str | None, close: Callable[[], None]) -> Slot:
        """A new connection from `address`; None for a trusted proxy's, which counts in all only.

        `close` ends the connection. Raises TooManyConnections.
        """
        if self._num >= self._limits.max_connections:
            self._make_room(self._unauthenticated, "too_many_connections")
        slot = self._admitted(address, close)
        self._num += 1
        if slot.address is not None:
            self.start_waiting(slot)
        return slot

    def admit_request(self, address: str) -> Slot:
        """An unauthenticated request of the client at `address`, through a trusted proxy.

        Raises TooManyConnections.
        """
        return self._admitted(address, None)

    def _admitted(self, address: str | None, close: Callable[[], None] | None) -> Slot:
        if address is None:
            return Slot(self, None, close)
        key = network_of(address)
        self._keep_bounds(key)
        for group in (self._unauthenticated, self._by_address.setdefault(key, _Group())):
            group.num += 1
        return Slot(self, key, close)

    def _keep_bounds(self, key: str) -> None:
        own = self._by_address.get(key)
        if own is not None and own.num >= self._limits.max_unauthenticated_per_address:
            self._make_room(own, "too_many_from_address")
        if self._unauthenticated.num >= self._limits.max_unauthenticated:
            self._make_room(self._unauthenticated, "too_many_unauthenticated")

    def _make_room(self, group: _Group, reason: str) -> None:
        REFUSED.labels(reason).inc()
        longest = next(iter(group.waiting), None)
        if longest is None or longest.close is None:
            raise TooManyConnections(reason)
        close = longest.close
        longest.release()
        close()

    def start_waiting(self, slot: Slot) -> None:
        for group in self._groups(slot):
            group.waiting[slot] = None

    def stop_waiting(self, slot: Slot) -> None:
        for group in self._groups(slot):
            group.waiting.pop(slot, None)

    def forget_unauthenticated(self, slot: Slot) -> None:
        self.stop_waiting(slot)
        for group in self._groups(slot):
            group.num -= 1
        if slot.address is not None and not self._by_address[slot.address].num:
            del self._by_address[slot.address]

    def forget(self, slot: Slot) -> None:
        if not slot.is_authenticated:
            self.forget_unauthenticated(slot)
        if not slot.is_request:
            self._num -= 1

    def _groups(self, slot: Slot) -> tuple[_Group, ...]:
        if slot.address is None:
            return ()
        return (self._unauthenticated, self._by_address[slot.address])


def network_of(address: str) -> str:
    """An IPv4 address itself, of an IPv6 address its /64: one customer of a provider has that.

    A text that is no address, as a proxy may forward one, stands for itself.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return address[:64]
    if not isinstance(parsed, IPv6Address):
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return f"{int(parsed) >> (128 - _IPV6_NETWORK_BITS):x}/64"


def authenticate_connection(scope: MutableMapping[str, Any]) -> None:
    """A credential was verified on the connection of this ASGI scope. On the event loop only."""
    slot = scope.get("state", {}).get("slot")
    if slot is not None:
        slot.authenticate()
