"""The consumers with clients that disconnect, are slow or have no key."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from caret.contracts.usage import FinishReason
from inference.consumers import http, openai_completions
from inference.consumers.completions import MAX_BODY_BYTES, CompletionConsumer
from inference.consumers.http import HealthConsumer
from inference.consumers.websocket import WebSocketConsumer
from inference.errors import TooManyRequests
from inference.gateway.rate_limits.body_quota import MAX_OF_KEY_BYTES
from inference.recording.metrics.completion_metrics import CompletionMetrics
from tests.fakes.asgi import FakeServer, http_scope, websocket_scope
from tests.fakes.engine import FakeEngine, chunks_of
from tests.fakes.gateway import KEY, NEIGHBOURS_KEY, FakeGateway
from tests.fakes.polling import until
from tests.fakes.tenants import make_credential, make_snapshot

PATH = "/v1/completions"
BODY = json.dumps({"prompt": "a = ", "suffix": "\n", "stream": True}).encode()
DEADLINE_S = 5


def hanging() -> FakeEngine:
    return FakeEngine(chunks_of("b", stop=None), hangs=True)


async def run_openai(gateway: FakeGateway, server: FakeServer) -> None:
    app = CompletionConsumer.as_asgi(plane=gateway.plane, dialect=openai_completions.DIALECT)
    async with asyncio.timeout(DEADLINE_S):
        await app(server.scope, server.receive, server.send)


async def test_a_stranger_is_refused_before_the_body_has_come() -> None:
    server = FakeServer(http_scope(PATH))
    server.sends("http.request", body=b"{", more_body=True)

    await run_openai(FakeGateway(), server)

    assert (server.status, server.code) == (401, "missing_api_key")


async def test_another_method_is_refused_before_the_body_has_come() -> None:
    server = FakeServer(http_scope(PATH, key=KEY.text, method="PUT"))
    server.sends("http.request", body=b"{", more_body=True)

    await run_openai(FakeGateway(), server)

    assert (server.status, server.code) == (405, "method_not_allowed")


async def test_a_slow_upload_does_not_make_the_first_token_late() -> None:
    gateway, metrics = FakeGateway(engine=FakeEngine(chunks_of("b"))), CompletionMetrics()
    recorder = replace(gateway.plane.recorder, observers=(metrics,))
    gateway.plane = replace(gateway.plane, recorder=recorder)
    server = FakeServer(http_scope(PATH, key=KEY.text))
    server.sends("http.request", body=BODY[:5], more_body=True)
    exchange = asyncio.create_task(run_openai(gateway, server))
    await until(lambda: server.num_received == 1)

    gateway.clock.pass_s(9.0)
    server.sends("http.request", body=BODY[5:])
    await exchange

    (seconds,) = [
        sample.value
        for family in metrics.collect()
        for sample in family.samples
        if sample.name == "caret_first_token_seconds_sum"
    ]
    assert seconds == 0.0


async def test_a_body_that_grows_too_large_is_refused_while_it_comes() -> None:
    server = FakeServer(http_scope(PATH, key=KEY.text))
    server.sends("http.request", body=b"x" * (MAX_BODY_BYTES + 1), more_body=True)

    await run_openai(FakeGateway(), server)

    assert (server.status, server.code) == (413, "too_large")


async def test_a_stranger_is_refused_though_no_body_ever_comes() -> None:
    server = FakeServer(http_scope(PATH))

    await run_openai(FakeGateway(), server)

    assert (server.status, server.code) == (401, "missing_api_key")


async def test_a_body_that_never_comes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAX_RECEIVE_S", 0.01)  # the time limit itself, not our code
    server = FakeServer(http_scope(PATH, key=KEY.text))

    await run_openai(FakeGateway(), server)

    assert (server.status, server.code) == (408, "too_slow")


async def _half_sent(gateway: FakeGateway, key: str, count: int) -> list[FakeServer]:
    """Send incomplete bodies of 7 MB each, and return the rejected ones."""
    servers = [FakeServer(http_scope(PATH, key=key)) for _ in range(count)]
    for server in servers:
        server.sends("http.request", body=b"x" * 7 * 1024 * 1024, more_body=True)
    exchanges = [asyncio.create_task(run_openai(gateway, server)) for server in servers]
    await asyncio.sleep(0.05)
    refused = [server for server in servers if server.messages]
    for server in servers:
        server.sends("http.disconnect")
    await asyncio.gather(*exchanges, return_exceptions=True)
    return refused


async def test_one_keys_half_sent_bodies_are_bounded() -> None:
    gateway = FakeGateway()

    refused = await _half_sent(gateway, KEY.text, 40)

    assert len(refused) == 40 - MAX_OF_KEY_BYTES // (7 * 1024 * 1024)
    assert {(server.status, server.code) for server in refused} == {(429, "too_many_requests")}


async def test_a_neighbours_bodies_come_while_a_key_has_sent_all_that_it_may() -> None:
    gateway = FakeGateway()

    one, other = await asyncio.gather(
        _half_sent(gateway, KEY.text, 40), _half_sent(gateway, NEIGHBOURS_KEY.text, 1)
    )

    assert (bool(one), other) == (True, [])


async def test_bodies_that_were_given_up_count_no_more() -> None:
    gateway = FakeGateway()

    await _half_sent(gateway, KEY.text, 40)

    assert gateway.plane.body_quota.num_bytes == 0
    assert not await _half_sent(gateway, KEY.text, 1)


async def test_a_body_that_is_whole_is_not_on_its_way() -> None:
    gateway, server = FakeGateway(engine=hanging()), FakeServer(http_scope(PATH, key=KEY.text))
    server.sends("http.request", body=BODY[:9], more_body=True)
    server.sends("http.request", body=BODY[9:])
    exchange = asyncio.create_task(run_openai(gateway, server))
    await until(lambda: gateway.engine.num_open == 1)

    assert gateway.plane.body_quota.num_bytes == 0
    server.sends("http.disconnect")
    await exchange


async def test_what_has_no_use_for_a_body_takes_none() -> None:
    gateway, server = FakeGateway(), FakeServer(http_scope("/healthz"))
    server.sends("http.request", body=b"x", more_body=True)

    async with asyncio.timeout(DEADLINE_S):
        await HealthConsumer.as_asgi(plane=gateway.plane)(server.scope, server.receive, server.send)

    assert server.status == 413


async def test_who_may_come_back_later_is_told_when() -> None:
    class BusyConsumer(HealthConsumer):
        def authorize(self) -> None:
            raise TooManyRequests("rate_limited", "Too many requests.", retry_after_s=1.2)

    gateway, server = FakeGateway(), FakeServer(http_scope("/healthz"))
    server.sends("http.request", body=b"")

    await BusyConsumer.as_asgi(plane=gateway.plane)(server.scope, server.receive, server.send)

    assert (server.status, server.headers["retry-after"]) == (429, "2")


async def test_the_exchange_ends_with_the_answer() -> None:
    gateway, server = FakeGateway(), FakeServer(http_scope(PATH, key=KEY.text))
    server.sends("http.request", body=BODY)

    await run_openai(gateway, server)  # no disconnect message is ever sent

    assert server.messages[-1]["body"].endswith(b"data: [DONE]\n\n")


async def test_an_answer_that_nobody_takes_ends_the_exchange() -> None:
    gateway = FakeGateway(engine=hanging())
    server = FakeServer(http_scope(PATH, key=KEY.text), breaks_at="http.response.body")
    server.sends("http.request", body=BODY)

    await run_openai(gateway, server)

    assert gateway.engine.num_open == 0


async def test_a_client_that_leaves_ends_the_engine_and_is_recorded() -> None:
    gateway = FakeGateway(engine=hanging())
    server = FakeServer(http_scope(PATH, key=KEY.text))
    server.sends("http.request", body=BODY)
    exchange = asyncio.create_task(run_openai(gateway, server))
    await until(lambda: gateway.engine.num_open == 1)

    server.sends("http.disconnect")
    await exchange

    assert gateway.engine.num_open == 0
    assert [each.finish for each in gateway.journal.completions] == [FinishReason.CANCELLED]


async def test_a_server_that_shuts_down_waits_for_the_record() -> None:
    gateway = FakeGateway(engine=hanging())
    server = FakeServer(http_scope(PATH, key=KEY.text))
    server.sends("http.request", body=BODY)
    exchange = asyncio.create_task(run_openai(gateway, server))
    await until(lambda: gateway.engine.num_open == 1)

    exchange.cancel()
    await asyncio.gather(exchange, return_exceptions=True)

    assert len(gateway.journal.completions) == 1


async def test_a_revoked_key_ends_a_stream_under_way() -> None:
    gateway = FakeGateway(engine=hanging())
    server = FakeServer(http_scope(PATH, key=KEY.text))
    server.sends("http.request", body=BODY)
    exchange = asyncio.create_task(run_openai(gateway, server))
    await until(lambda: len(server.messages) > 1)

    revoked = make_snapshot(make_credential(KEY, revoked_at_ms=1))
    gateway.authority.replace(msgspec.structs.replace(revoked, version=2))
    await exchange

    assert gateway.engine.num_open == 0
    assert server.messages[-1]["body"].endswith(b"data: [DONE]\n\n")


async def test_a_socket_that_takes_no_answer_leaves_nothing_behind() -> None:
    gateway = FakeGateway()
    server = FakeServer(websocket_scope(KEY.text), breaks_at="websocket.send")
    app: Any = WebSocketConsumer.as_asgi(plane=gateway.plane, allowed_origins=frozenset())
    server.sends("websocket.connect")
    server.sends("websocket.receive", text="nonsense")

    async with asyncio.timeout(DEADLINE_S):
        await app(server.scope, server.receive, server.send)

    # A remaining watcher of the key would be notified of its end, and would close the socket.
    gateway.authority.replace(msgspec.structs.replace(make_snapshot(), version=2))
    await asyncio.sleep(0.01)
    assert [message["type"] for message in server.messages] == ["websocket.accept"]
