"""The consumers under clients that leave, dawdle or have no key."""

import asyncio
import json
from typing import Any

import msgspec

from caret.contracts.usage import Finish
from inference.consumers import openai
from inference.consumers.generation import MAX_BODY_BYTES, GenerationConsumer
from inference.consumers.health import HealthConsumer
from inference.consumers.stream import StreamConsumer
from inference.errors import Busy
from tests.fakes.asgi import FakeServer, http_scope, websocket_scope
from tests.fakes.engine import FakeEngine, chunks_of
from tests.fakes.gateway import KEY, FakeGateway
from tests.fakes.tenants import make_credential, make_snapshot
from tests.fakes.waiting import until

PATH = "/v1/completions"
BODY = json.dumps({"prompt": "a = ", "suffix": "\n", "stream": True}).encode()
DEADLINE_S = 5


def hanging() -> FakeEngine:
    return FakeEngine(chunks_of("b", stop=None), hangs=True)


async def run_openai(gateway: FakeGateway, server: FakeServer) -> None:
    app = GenerationConsumer.as_asgi(plane=gateway.plane, dialect=openai.DIALECT)
    async with asyncio.timeout(DEADLINE_S):
        await app(server.scope, server.receive, server.send)


async def test_a_stranger_is_refused_before_the_body_has_come() -> None:
    server = FakeServer(http_scope(PATH))
    server.sends("http.request", body=b"{", more_body=True)

    await run_openai(FakeGateway(), server)

    assert (server.status, server.code) == (401, "missing_key")


async def test_another_method_is_refused_before_the_body_has_come() -> None:
    server = FakeServer(http_scope(PATH, key=KEY.text, method="PUT"))
    server.sends("http.request", body=b"{", more_body=True)

    await run_openai(FakeGateway(), server)

    assert (server.status, server.code) == (405, "method_not_allowed")


async def test_a_body_that_grows_too_large_is_refused_while_it_comes() -> None:
    server = FakeServer(http_scope(PATH, key=KEY.text))
    server.sends("http.request", body=b"x" * (MAX_BODY_BYTES + 1), more_body=True)

    await run_openai(FakeGateway(), server)

    assert (server.status, server.code) == (413, "too_large")


async def test_what_has_no_use_for_a_body_takes_none() -> None:
    gateway, server = FakeGateway(), FakeServer(http_scope("/healthz"))
    server.sends("http.request", body=b"x", more_body=True)

    async with asyncio.timeout(DEADLINE_S):
        await HealthConsumer.as_asgi(plane=gateway.plane)(server.scope, server.receive, server.send)

    assert server.status == 413


async def test_who_may_come_back_later_is_told_when() -> None:
    class BusyConsumer(HealthConsumer):
        def check(self) -> None:
            raise Busy("rate_limited", "Too many requests.", retry_after_s=1.2)

    gateway, server = FakeGateway(), FakeServer(http_scope("/healthz"))
    server.sends("http.request", body=b"")

    await BusyConsumer.as_asgi(plane=gateway.plane)(server.scope, server.receive, server.send)

    assert (server.status, server.headers["retry-after"]) == (429, "2")


async def test_the_exchange_ends_with_the_answer() -> None:
    gateway, server = FakeGateway(), FakeServer(http_scope(PATH, key=KEY.text))
    server.sends("http.request", body=BODY)

    await run_openai(gateway, server)  # no disconnect is ever sent

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
    assert [each.finish for each in gateway.journal.completions] == [Finish.CANCELLED]


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
    app: Any = StreamConsumer.as_asgi(plane=gateway.plane, allowed_origins=frozenset())
    server.sends("websocket.connect")
    server.sends("websocket.receive", text="nonsense")

    async with asyncio.timeout(DEADLINE_S):
        await app(server.scope, server.receive, server.send)

    # Who still watched the key would hear of its end, and would close the socket.
    gateway.authority.replace(msgspec.structs.replace(make_snapshot(), version=2))
    await asyncio.sleep(0.01)
    assert [message["type"] for message in server.messages] == ["websocket.accept"]
