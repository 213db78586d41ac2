"""The class Connections without sockets: connections that are admitted at the same moment.

`close` of a real connection takes effect only after the event loop's next iteration. Here it only
notes the name of the connection.
"""

from dataclasses import replace

import pytest

from caret.foundation.web.connections import Connections, ConnectionSlot, TooManyConnections
from caret.foundation.web.server_limits import ServerLimits


class NamedConnections:
    """Connections with names, which notes the names of those that it closes."""

    def __init__(self, **limits: int) -> None:
        self.connections = Connections(replace(ServerLimits(), **limits))
        self.closed: list[str] = []

    def admit(self, name: str, address: str | None) -> ConnectionSlot:
        return self.connections.admit(address, lambda: self.closed.append(name))


def test_a_replaced_request_of_a_proxy_frees_the_place_of_its_connection() -> None:
    named = NamedConnections(max_connections=2)
    proxy = named.admit("proxy", None)
    named.connections.admit_request("192.0.2.1", proxy)
    named.admit("client", "192.0.2.2").begin_request()

    named.admit("first new", "192.0.2.3").begin_request()
    with pytest.raises(TooManyConnections):
        named.admit("second new", "192.0.2.4")

    assert named.closed == ["proxy"]


def test_a_rejected_connection_replaces_no_other() -> None:
    named = NamedConnections(max_connections=2, max_unauthenticated_per_address=1)
    named.admit("waiting", "192.0.2.1")
    named.admit("busy", "192.0.2.2").begin_request()

    with pytest.raises(TooManyConnections) as exc_info:
        named.admit("rejected", "192.0.2.2")

    assert exc_info.value.reason == "too_many_from_address"
    assert named.closed == []
