"""A key that is restricted to networks is invalid from elsewhere, on every endpoint."""

import asyncio

import pytest

from caret.foundation.web.connections import Connections, ConnectionSlot
from caret.foundation.web.server_limits import ServerLimits
from inference.consumers.application import DIALECTS, OTHER_CONSUMERS
from inference.consumers.base import Scope
from inference.consumers.dialects.models_list import AuthenticatedJsonConsumer
from inference.consumers.http.completions import CompletionConsumer
from inference.consumers.http.identical_requests import IdenticalRequests
from inference.consumers.websocket import WebSocketConsumer
from tests.fakes.asgi import FakeServer, http_scope, websocket_scope
from tests.fakes.gateway import KEY, FakeGateway
from tests.fakes.polling import wait_until
from tests.fakes.tenants import make_credential, make_snapshot

DEADLINE_S = 5
# The endpoints that need a key, besides those of completions (DIALECTS).
KEY_PATHS = sorted(
    path
    for path, consumer in OTHER_CONSUMERS.items()
    if issubclass(consumer, AuthenticatedJsonConsumer)
)
PUBLIC_PATHS = {"/health", "/healthz"}


@pytest.fixture
def gateway() -> FakeGateway:
    gateway = FakeGateway()
    restricted = make_credential(KEY, networks=("192.0.2.0/24",))
    gateway.snapshot_store.replace(make_snapshot(restricted, version=2))
    return gateway


def scope_from(scope: Scope, address: str) -> Scope:
    """Return the scope of a request from this address, on a new unauthenticated connection."""
    slot = Connections(ServerLimits()).admit(address, lambda: None)
    return {**scope, "client": (address, 50_000), "state": {"slot": slot}}


def is_authenticated(server: FakeServer) -> bool:
    """Return True if the server no longer counts the connection as unauthenticated."""
    slot: ConnectionSlot = server.scope["state"]["slot"]
    return slot.is_authenticated


async def send_request(gateway: FakeGateway, path: str, address: str) -> FakeServer:
    """Send a request with an empty body, which arrives after the check of the key."""
    methods = OTHER_CONSUMERS[path].methods if path in OTHER_CONSUMERS else (b"POST",)
    method = methods[0].decode()
    server = FakeServer(scope_from(http_scope(path, key=KEY.text, method=method), address))
    server.queue_message("http.request", body=b"")
    if path in OTHER_CONSUMERS:
        app = OTHER_CONSUMERS[path].as_asgi(plane=gateway.plane)
    else:
        app = CompletionConsumer.as_asgi(
            plane=gateway.plane, dialect=DIALECTS[path], identical_requests=IdenticalRequests()
        )
    async with asyncio.timeout(DEADLINE_S):
        await app(server.scope, server.receive, server.send)
    return server


def test_only_the_health_checks_need_no_key() -> None:
    assert set(OTHER_CONSUMERS) - set(KEY_PATHS) == PUBLIC_PATHS


@pytest.mark.parametrize("path", [*sorted(DIALECTS), *KEY_PATHS])
async def test_the_key_is_invalid_from_another_network(gateway: FakeGateway, path: str) -> None:
    server = await send_request(gateway, path, "198.51.100.7")

    assert server.status == 401
    assert not is_authenticated(server)
    # Some protocols have no error codes, only a sentence.
    assert b"invalid_api_key" in server.body or b"not a valid API key" in server.body


@pytest.mark.parametrize("path", [*sorted(DIALECTS), *KEY_PATHS])
async def test_the_key_is_valid_from_its_network(gateway: FakeGateway, path: str) -> None:
    server = await send_request(gateway, path, "::ffff:192.0.2.7")

    assert server.status != 401
    assert is_authenticated(server)


@pytest.mark.parametrize(
    ("address", "message_type"),
    [("198.51.100.7", "websocket.http.response.start"), ("192.0.2.7", "websocket.accept")],
)
async def test_a_stream_opens_only_from_the_keys_network(
    gateway: FakeGateway, address: str, message_type: str
) -> None:
    server = FakeServer(scope_from(websocket_scope(KEY.text), address))
    server.queue_message("websocket.connect")
    server.queue_message("websocket.disconnect")

    app = WebSocketConsumer.as_asgi(plane=gateway.plane, allowed_origins=frozenset())
    async with asyncio.timeout(DEADLINE_S):
        await app(server.scope, server.receive, server.send)

    assert server.messages[0]["type"] == message_type
    assert is_authenticated(server) is (message_type == "websocket.accept")


async def test_an_open_stream_checks_the_network_at_each_completion(gateway: FakeGateway) -> None:
    server = FakeServer(scope_from(websocket_scope(KEY.text), "192.0.2.7"))
    server.queue_message("websocket.connect")
    app = WebSocketConsumer.as_asgi(plane=gateway.plane, allowed_origins=frozenset())
    running = asyncio.create_task(app(server.scope, server.receive, server.send))
    await wait_until(lambda: bool(server.messages))

    moved_to_another_network = make_credential(KEY, networks=("203.0.113.0/24",))
    gateway.snapshot_store.replace(make_snapshot(moved_to_another_network, version=3))
    frame = '{"type":"complete","id":"1","mode":"inline","prefix":"a"}'
    server.queue_message("websocket.receive", text=frame)
    await wait_until(lambda: len(server.messages) > 1)
    server.queue_message("websocket.disconnect")
    await running

    assert '"invalid_api_key"' in server.messages[1]["text"]
