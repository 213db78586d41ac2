"""Limits on the connections of a server: on all of them, and on unauthenticated ones.

A connection is unauthenticated until the application has verified a credential on it. A connection
is waiting while its request is incomplete, or while it is idle between two requests. At a limit, a
new connection replaces the connection that has waited longest, unauthenticated ones first. A
well-behaved client sends its request within milliseconds, so slow senders are replaced first. If no
connection is waiting, the new one is rejected.

The connections of a trusted proxy carry the requests of many clients. So they count only in the
limit on all connections. Each unauthenticated request from a proxy counts in the limits on
unauthenticated connections, with the client address that the proxy forwards.
"""

from collections.abc import Callable, MutableMapping
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Any, Final

from prometheus_client import Counter, Gauge

from caret.foundation.web.server_limits import ServerLimits

_IPV6_NETWORK_BITS: Final = 64  # prefix length

# `reason` names the limit. Each process registers these metrics with its own registry.
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
    """A limit is reached, and no waiting connection can be closed instead."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason  # label of REFUSED


class ConnectionSlot:
    """One connection within the limits, or one request from a trusted proxy."""

    __slots__ = (
        "_connections",
        "address",
        "close",
        "connection",
        "is_authenticated",
        "is_released",
    )

    def __init__(
        self,
        connections: "Connections",
        address: str | None,
        close: Callable[[], None],
        *,
        connection: "ConnectionSlot | None" = None,
    ) -> None:
        self._connections = connections
        self.address = address  # result of `network_of`; None: a trusted proxy
        self.close = close
        # A request's slot: the slot of its proxy's connection. None: a connection's slot.
        self.connection = connection
        self.is_authenticated = address is None  # trusted proxies count as authenticated
        self.is_released = False

    def begin_request(self) -> None:
        """Note that a request was received completely: the connection is no longer waiting."""
        if not self.is_released:
            self._connections.stop_waiting(self)

    def end_request(self) -> None:
        """Note that the response has ended: the connection waits for its next request."""
        if not self.is_released:
            self._connections.start_waiting(self)

    def authenticate(self) -> None:
        """Note that a credential was verified: the slot no longer counts as unauthenticated."""
        if not self.is_authenticated and not self.is_released:
            self._connections.move_to_authenticated(self)

    def release(self) -> None:
        """Note that the connection is closed. May be called repeatedly."""
        if not self.is_released:
            self.is_released = True
            self._connections.remove(self)


class _SlotGroup:
    """All unauthenticated slots, those of one address, or all authenticated connections' slots."""

    __slots__ = ("num_slots", "queue")

    def __init__(self) -> None:
        self.num_slots = 0
        self.queue: dict[ConnectionSlot, None] = {}  # slots that wait, longest waiting first


class Connections:
    """All connections of one server. Used on one event loop only, so it needs no lock."""

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        self._num_connections = 0
        self._unauthenticated, self._authenticated = _SlotGroup(), _SlotGroup()
        self._by_address: dict[str, _SlotGroup] = {}  # of unauthenticated slots
        CONNECTIONS.set_function(lambda: self._num_connections)
        UNAUTHENTICATED.set_function(lambda: self._unauthenticated.num_slots)

    def admit(self, address: str | None, close: Callable[[], None]) -> ConnectionSlot:
        """Admit a new connection from `address`; None for a trusted proxy.

        A trusted proxy counts only in the total. `close` closes the connection. Raises
        TooManyConnections.
        """
        network = None if address is None else network_of(address)
        # These limits come first: if they reject the connection, no other one must be closed for
        # it. If they make room, the limit on all connections needs no more room.
        if network is not None:
            self._enforce_unauthenticated_limits(network)
        if self._num_connections >= self._limits.max_connections:
            self._make_room("too_many_connections", self._unauthenticated, self._authenticated)
        self._num_connections += 1
        return self._add(ConnectionSlot(self, network, close))

    def admit_request(self, address: str, connection: ConnectionSlot) -> ConnectionSlot:
        """Admit an unauthenticated request of the client at `address`, through a trusted proxy.

        `connection` is the slot of the proxy's connection. Raises TooManyConnections.
        """
        network = network_of(address)
        self._enforce_unauthenticated_limits(network)
        return self._add(ConnectionSlot(self, network, connection.close, connection=connection))

    def _add(self, slot: ConnectionSlot) -> ConnectionSlot:
        if slot.address is not None:
            self._by_address.setdefault(slot.address, _SlotGroup())
        self._join(slot)
        self.start_waiting(slot)
        return slot

    def _enforce_unauthenticated_limits(self, network: str) -> None:
        """Make room for an unauthenticated slot. Raises TooManyConnections."""
        group = self._by_address.get(network)
        if group is not None and group.num_slots >= self._limits.max_unauthenticated_per_address:
            self._make_room("too_many_from_address", group)
        if self._unauthenticated.num_slots >= self._limits.max_unauthenticated:
            self._make_room("too_many_unauthenticated", self._unauthenticated)

    def _make_room(self, reason: str, *groups: _SlotGroup) -> None:
        """Close the connection that has waited longest, from the first group in which one waits.

        A request through a proxy ends with its whole connection. Raises TooManyConnections.
        """
        REFUSED.labels(reason).inc()
        longest = next((slot for group in groups for slot in group.queue), None)
        if longest is None:
            raise TooManyConnections(reason)
        longest.release()
        if longest.connection is not None:
            longest.connection.release()  # at once: `close` ends the connection only later
        longest.close()

    def start_waiting(self, slot: ConnectionSlot) -> None:
        for group in self._groups_of(slot):
            group.queue[slot] = None

    def stop_waiting(self, slot: ConnectionSlot) -> None:
        for group in self._groups_of(slot):
            group.queue.pop(slot, None)

    def move_to_authenticated(self, slot: ConnectionSlot) -> None:
        is_waiting = slot in self._unauthenticated.queue
        self._leave(slot)
        slot.is_authenticated = True
        self._join(slot)
        if is_waiting:
            self.start_waiting(slot)

    def remove(self, slot: ConnectionSlot) -> None:
        self._leave(slot)
        if slot.connection is None:
            self._num_connections -= 1

    def _join(self, slot: ConnectionSlot) -> None:
        for group in self._groups_of(slot):
            group.num_slots += 1

    def _leave(self, slot: ConnectionSlot) -> None:
        self.stop_waiting(slot)
        for group in self._groups_of(slot):
            group.num_slots -= 1
        address = None if slot.is_authenticated else slot.address
        if address is not None and not self._by_address[address].num_slots:
            del self._by_address[address]

    def _groups_of(self, slot: ConnectionSlot) -> tuple[_SlotGroup, ...]:
        if not slot.is_authenticated and slot.address is not None:
            return (self._unauthenticated, self._by_address[slot.address])
        # An authenticated request is in no group: its proxy's connection has a slot of its own.
        return (self._authenticated,) if slot.connection is None else ()


@lru_cache(maxsize=4096)
def network_of(address: str) -> str:
    """Return an IPv4 address unchanged, and a text for the /64 network of an IPv6 address.

    An internet provider usually gives each customer one /64 network. An IPv4-mapped IPv6 address
    counts as IPv4. If a proxy forwards text that is not an address, return its first 64 characters.
    """
    try:
        ip = ip_address(address)
    except ValueError:
        return address[:64]
    if not isinstance(ip, IPv6Address):
        return address
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return f"{int(ip) >> (128 - _IPV6_NETWORK_BITS):x}/64"


def mark_connection_authenticated(scope: MutableMapping[str, Any]) -> None:
    """Note that a credential was verified on the connection of this ASGI scope.

    Call it on the event loop only.
    """
    slot = scope.get("state", {}).get("slot")
    if slot is not None:
        slot.authenticate()
