"""The gateway's HTTP and WebSocket consumers, with clients that leave, are slow or have no key."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from caret.contracts.usage import FinishReason
from inference.consumers.dialects import openai_completions
from inference.consumers.http import http_consumer
from inference.consumers.http.completions import MAX_BODY_BYTES, CompletionConsumer
from inference.consumers.http.http_consumer import HealthConsumer
from inference.consumers.http.identical_requests import IdenticalRequests
from inference.consumers.websocket import WebSocketConsumer
from inference.errors import TooManyRequests
from inference.gateway.rate_limits.body_quota import MAX_OF_KEY_BYTES
from inference.recording.metrics.completion_metrics import CompletionMetrics
from tests.fakes.asgi import FakeServer, http_scope, websocket_scope
from tests.fakes.engine import FakeEngine, chunks_of
from tests.fakes.gateway import KEY, NEIGHBOURS_KEY, FakeGateway
from tests.fakes.polling import wait_until
from tests.fakes.tenants import make_credential, make_snapshot

PATH = "/v1/completions"
BODY = json.dumps({"prompt": "a = ", "suffix": "\n", "stream": True}).encode()
INCOMPLETE_BYTES = 7 * 1024 * 1024  # several such bodies exceed the quota of a key
DEADLINE_S = 60  # enough on a busy machine


def hanging_engine() -> FakeEngine:
    return FakeEngine(chunks_of("b", stop=None), hangs=True)


async def run_completion_consumer(gateway: FakeGateway, server: FakeServer) -> None:
    """Serve the request of `server` with the consumer of OpenAI's completions."""
    app = CompletionConsumer.as_asgi(
        plane=gateway.plane,
        dialect=openai_completions.DIALECT,
        identical_requests=IdenticalRequests(),
    )
    async with asyncio.timeout(DEADLINE_S):
        await app(server.scope, server.receive, server.send)


@pytest.mark.parametrize("query", ["", f"?key={KEY.text}"], ids=["no key", "a key in the URL"])
async def test_a_request_without_a_key_is_rejected_before_its_body_arrives(query: str) -> None:
    server = FakeServer(http_scope(PATH + query))
    server.queue_message("http.request", body=b"{", more_body=True)

    await run_completion_consumer(FakeGateway(), server)

    assert (server.status, server.error_code) == (401, "missing_api_key")


async def test_a_wrong_method_is_rejected_before_the_body_arrives() -> None:
    server = FakeServer(http_scope(PATH, key=KEY.text, method="PUT"))
    server.queue_message("http.request", body=b"{", more_body=True)

    await run_completion_consumer(FakeGateway(), server)

    assert (server.status, server.error_code) == (405, "method_not_allowed")


async def test_a_slow_upload_does_not_count_as_first_token_latency() -> None:
    gateway, metrics = FakeGateway(engine=FakeEngine(chunks_of("b"))), CompletionMetrics()
    recorder = replace(gateway.plane.recorder, observers=(metrics,))
    gateway.plane = replace(gateway.plane, recorder=recorder)
    server = FakeServer(http_scope(PATH, key=KEY.text))
    server.queue_message("http.request", body=BODY[:5], more_body=True)
    exchange = asyncio.create_task(run_completion_consumer(gateway, server))
    await wait_until(lambda: server.num_received == 1)

    gateway.clock.pass_s(9.0)
    server.queue_message("http.request", body=BODY[5:])
    await exchange

    (first_token_s,) = [
        sample.value
        for family in metrics.collect()
        for sample in family.samples
        if sample.name == "caret_first_token_seconds_sum"
    ]
    assert first_token_s == 0.0


async def test_a_body_over_the_limit_is_rejected_while_it_arrives() -> None:
    server = FakeServer(http_scope(PATH, key=KEY.text))
    server.queue_message("http.request", body=b"x" * (MAX_BODY_BYTES + 1), more_body=True)

    await run_completion_consumer(FakeGateway(), server)

    assert (server.status, server.error_code) == (413, "too_large")


async def test_a_request_without_a_key_is_rejected_if_no_body_arrives() -> None:
    server = FakeServer(http_scope(PATH))

    await run_completion_consumer(FakeGateway(), server)

    assert (server.status, server.error_code) == (401, "missing_api_key")


async def test_a_body_that_never_arrives_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_consumer, "MAX_RECEIVE_S", 0.01)  # a shorter time limit
    server = FakeServer(http_scope(PATH, key=KEY.text))

    await run_completion_consumer(FakeGateway(), server)

    assert (server.status, server.error_code) == (408, "too_slow")


async def _send_incomplete_bodies(gateway: FakeGateway, key: str, count: int) -> list[FakeServer]:
    """Send `count` incomplete bodies at once, and return the servers of the rejected requests.

    All clients disconnect at the end.
    """
    servers = [FakeServer(http_scope(PATH, key=key)) for _ in range(count)]
    for server in servers:
        server.queue_message("http.request", body=b"x" * INCOMPLETE_BYTES, more_body=True)
    exchanges = [
        asyncio.create_task(run_completion_consumer(gateway, server)) for server in servers
    ]
    await wait_until(lambda: all(server.num_received for server in servers))
    await asyncio.sleep(0.05)  # enough for the rejections; the other requests wait for their bodies
    rejected = [server for server in servers if server.messages]
    for server in servers:
        server.queue_message("http.disconnect")
    await asyncio.gather(*exchanges, return_exceptions=True)
    return rejected


async def test_the_incomplete_bodies_of_a_key_are_limited() -> None:
    gateway = FakeGateway()

    rejected = await _send_incomplete_bodies(gateway, KEY.text, 40)

    assert len(rejected) == 40 - MAX_OF_KEY_BYTES // INCOMPLETE_BYTES
    assert {(server.status, server.error_code) for server in rejected} == {
        (429, "too_many_requests")
    }


async def test_the_limit_of_a_key_does_not_affect_another_tenant() -> None:
    gateway = FakeGateway()

    our_rejections, neighbours_rejections = await asyncio.gather(
        _send_incomplete_bodies(gateway, KEY.text, 40),
        _send_incomplete_bodies(gateway, NEIGHBOURS_KEY.text, 1),
    )

    assert our_rejections
    assert neighbours_rejections == []


async def test_abandoned_bodies_no_longer_count() -> None:
    gateway = FakeGateway()

    await _send_incomplete_bodies(gateway, KEY.text, 40)

    assert gateway.plane.body_quota.num_bytes == 0
    assert not await _send_incomplete_bodies(gateway, KEY.text, 1)


async def test_a_complete_body_no_longer_counts_as_incomplete() -> None:
    gateway = FakeGateway(engine=hanging_engine())
    server = FakeServer(http_scope(PATH, key=KEY.text))
    server.queue_message("http.request", body=BODY[:9], more_body=True)
    server.queue_message("http.request", body=BODY[9:])

    exchange = asyncio.create_task(run_completion_consumer(gateway, server))
    await wait_until(lambda: gateway.engine.num_open == 1)
    num_bytes_while_generating = gateway.plane.body_quota.num_bytes
    server.queue_message("http.disconnect")
    await exchange

    assert num_bytes_while_generating == 0


async def test_an_endpoint_that_reads_no_body_rejects_a_body() -> None:
    gateway, server = FakeGateway(), FakeServer(http_scope("/healthz"))
    server.queue_message("http.request", body=b"x", more_body=True)

    async with asyncio.timeout(DEADLINE_S):
        await HealthConsumer.as_asgi(plane=gateway.plane)(server.scope, server.receive, server.send)

    assert server.status == 413


async def test_a_gateway_with_outdated_snapshots_is_not_healthy() -> None:
    gateway, server = FakeGateway(), FakeServer(http_scope("/healthz"))
    server.queue_message("http.request", body=b"")
    gateway.clock.pass_s(301)  # the snapshots are trusted for 300 s

    await HealthConsumer.as_asgi(plane=gateway.plane)(server.scope, server.receive, server.send)

    assert server.status == 503


async def test_retry_after_is_sent_as_a_header() -> None:
    class BusyConsumer(HealthConsumer):
        def authorize(self) -> None:
            raise TooManyRequests("rate_limited", "Too many requests.", retry_after_s=1.2)

    gateway, server = FakeGateway(), FakeServer(http_scope("/healthz"))
    server.queue_message("http.request", body=b"")

    await BusyConsumer.as_asgi(plane=gateway.plane)(server.scope, server.receive, server.send)

    assert (server.status, server.headers["retry-after"]) == (429, "2")  # 1.2 s, rounded up


async def test_the_exchange_ends_after_the_response() -> None:
    gateway, server = FakeGateway(), FakeServer(http_scope(PATH, key=KEY.text))
    server.queue_message("http.request", body=BODY)

    await run_completion_consumer(gateway, server)  # no disconnect message is ever sent

    assert server.messages[-1]["body"].endswith(b"data: [DONE]\n\n")


async def test_a_response_that_cannot_be_sent_ends_the_engine_request() -> None:
    gateway = FakeGateway(engine=hanging_engine())
    server = FakeServer(http_scope(PATH, key=KEY.text), breaks_at="http.response.body")
    server.queue_message("http.request", body=BODY)

    await run_completion_consumer(gateway, server)

    assert gateway.engine.num_open == 0


async def test_a_disconnecting_client_ends_the_engine_request_and_is_recorded() -> None:
    gateway = FakeGateway(engine=hanging_engine())
    server = FakeServer(http_scope(PATH, key=KEY.text))
    server.queue_message("http.request", body=BODY)
    exchange = asyncio.create_task(run_completion_consumer(gateway, server))
    await wait_until(lambda: gateway.engine.num_open == 1)

    server.queue_message("http.disconnect")
    await exchange

    assert gateway.engine.num_open == 0
    assert [record.finish_reason for record in gateway.journal.completions] == [
        FinishReason.CANCELLED
    ]


async def test_a_completion_that_is_cancelled_at_a_shutdown_is_recorded() -> None:
    gateway = FakeGateway(engine=hanging_engine())
    server = FakeServer(http_scope(PATH, key=KEY.text))
    server.queue_message("http.request", body=BODY)
    exchange = asyncio.create_task(run_completion_consumer(gateway, server))
    await wait_until(lambda: gateway.engine.num_open == 1)

    exchange.cancel()
    await asyncio.gather(exchange, return_exceptions=True)

    assert len(gateway.journal.completions) == 1


async def test_a_revoked_key_ends_a_running_stream() -> None:
    gateway = FakeGateway(engine=hanging_engine())
    server = FakeServer(http_scope(PATH, key=KEY.text))
    server.queue_message("http.request", body=BODY)
    exchange = asyncio.create_task(run_completion_consumer(gateway, server))
    await wait_until(lambda: len(server.messages) > 1)

    gateway.snapshot_store.replace(make_snapshot(make_credential(KEY, revoked_at_ms=1), version=2))
    await exchange

    assert gateway.engine.num_open == 0
    assert b'"code":"revoked_api_key"' in server.messages[-1]["body"]


async def test_a_broken_websocket_leaves_no_key_watcher() -> None:
    gateway = FakeGateway()
    server = FakeServer(websocket_scope(KEY.text), breaks_at="websocket.send")
    app: Any = WebSocketConsumer.as_asgi(plane=gateway.plane, allowed_origins=frozenset())
    server.queue_message("websocket.connect")
    server.queue_message("websocket.receive", text="nonsense")

    async with asyncio.timeout(DEADLINE_S):
        await app(server.scope, server.receive, server.send)

    # This snapshot has no keys. A remaining watcher would notice that the key is gone, and close
    # the socket.
    gateway.snapshot_store.replace(make_snapshot(version=2))
    await asyncio.sleep(0.01)
    assert [message["type"] for message in server.messages] == ["websocket.accept"]
