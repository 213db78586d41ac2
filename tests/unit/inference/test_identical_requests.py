"""Identical requests of one key at the same time are generated once."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from caret.contracts.api_key import KeyKind, generate_key
from caret.contracts.usage import OutcomeEvent
from caret.foundation.ids import RequestId
from inference.consumers.base import Headers
from inference.consumers.http.identical_requests import MAX_WAITING, SHARED_COMPLETIONS
from tests.fakes.asgi import FakeServer, http_scope
from tests.fakes.engine import FakeEngine, chunks_of
from tests.fakes.gateway import KEY, NEIGHBOURS_KEY, FakeGateway
from tests.fakes.http_gateway import application
from tests.fakes.polling import wait_until
from tests.fakes.tenants import make_credential, make_principal, make_snapshot

PATH = "/v1/completions"
BODY: dict[str, Any] = {"prompt": "a = ", "suffix": "z"}
TEXTS = ("b", "c", *["d"] * 40)  # so many that all requests arrive before the first one ends
DEADLINE_S = 5


def make_gateway(**options: Any) -> FakeGateway:
    return FakeGateway(engine=FakeEngine(chunks_of(*TEXTS), **options))


def make_server(
    body: dict[str, Any], key: str = KEY.text, headers: Headers | None = None, path: str = PATH
) -> FakeServer:
    server = FakeServer(http_scope(path, key=key, headers=headers))
    server.queue_message("http.request", body=json.dumps(body).encode())
    return server


@asynccontextmanager
async def start_requests(
    gateway: FakeGateway, servers: Sequence[FakeServer]
) -> AsyncIterator[list[asyncio.Task[None]]]:
    async with application(gateway) as app, asyncio.timeout(DEADLINE_S):
        yield [
            asyncio.create_task(app(server.scope, server.receive, server.send))
            for server in servers
        ]


async def serve(gateway: FakeGateway, servers: Sequence[FakeServer]) -> None:
    """Send all requests at the same time, and wait for their responses."""
    async with start_requests(gateway, servers) as tasks:
        await asyncio.gather(*tasks)


def text_of(server: FakeServer) -> str:
    return str(json.loads(server.body)["choices"][0]["text"])


async def test_three_identical_requests_are_generated_and_recorded_once() -> None:
    gateway, num_shared = make_gateway(), SHARED_COMPLETIONS._value.get()
    servers = [make_server(BODY) for _ in range(3)]

    await serve(gateway, servers)

    assert len(gateway.engine.requests) == 1
    (completion,) = gateway.journal.completions
    assert {text_of(server) for server in servers} == {"".join(TEXTS)}
    assert {server.headers["x-request-id"] for server in servers} == {completion.request_id}
    assert {json.loads(server.body)["id"] for server in servers} == {
        f"cmpl-{completion.request_id}"
    }
    assert SHARED_COMPLETIONS._value.get() == num_shared + 2


async def test_a_streamed_request_gets_the_same_events() -> None:
    gateway = make_gateway()
    servers = [make_server({**BODY, "stream": True}) for _ in range(2)]

    await serve(gateway, servers)

    assert len(gateway.engine.requests) == 1
    for server in servers:
        # The events end with "data: [DONE]" and an empty line.
        *events, _, _ = server.body.decode().split("\n\n")
        choices = [json.loads(event.removeprefix("data: "))["choices"][0] for event in events]
        assert "".join(choice["text"] for choice in choices) == "".join(TEXTS)
        assert choices[-1]["finish_reason"] == "stop"


@pytest.mark.parametrize(
    "different_request",
    [
        make_server(BODY, NEIGHBOURS_KEY.text),
        make_server({**BODY, "prompt": "b = "}),
        make_server({**BODY, "max_tokens": 3}),
        make_server(BODY, headers=[(b"x-caret-path", b"a.py")]),
        make_server(BODY, headers=[(b"x-caret-editor", b"zed")]),
        make_server(BODY, path="/v1/fim/completions"),
    ],
    ids=["tenant", "prompt", "limit", "path", "editor", "protocol"],
)
async def test_requests_that_differ_are_generated_separately(different_request: FakeServer) -> None:
    gateway = make_gateway()

    await serve(gateway, [make_server(BODY), different_request])

    assert len(gateway.engine.requests) == len(gateway.journal.completions) == 2


async def test_chats_with_sampling_are_generated_separately() -> None:
    gateway = make_gateway()
    body = {"messages": [{"role": "user", "content": "Hello"}], "temperature": 1}

    await serve(gateway, [make_server(body, path="/v1/chat/completions") for _ in range(2)])

    assert len(gateway.engine.requests) == 2


async def test_requests_with_two_keys_of_a_user_are_generated_separately() -> None:
    gateway = make_gateway()
    second_key = generate_key(KeyKind.DEVELOPER)
    # Both keys belong to Ada, the default user.
    credentials = make_credential(KEY), make_credential(second_key, key_id="key-2")
    gateway.snapshot_store.replace(make_snapshot(*credentials, version=2))

    await serve(gateway, [make_server(BODY), make_server(BODY, second_key.text)])

    assert len(gateway.journal.completions) == 2


async def test_later_requests_are_generated_again() -> None:
    gateway = make_gateway()

    await serve(gateway, [make_server(BODY)])
    await serve(gateway, [make_server(BODY)])

    assert len(gateway.engine.requests) == 2


async def test_the_other_identical_requests_are_served_when_the_first_client_leaves() -> None:
    gateway = make_gateway(hangs=True)
    gateway.engine.chunks = chunks_of("b", stop=None)
    first, *other_servers = servers = [make_server(BODY) for _ in range(3)]

    async with start_requests(gateway, servers) as tasks:
        await wait_until(lambda: gateway.engine.num_yielded == 1)
        gateway.engine.chunks, gateway.engine.hangs = chunks_of(*TEXTS), False
        first.queue_message("http.disconnect")
        await asyncio.gather(*tasks)

    assert {text_of(server) for server in other_servers} == {"".join(TEXTS)}
    assert len(gateway.engine.requests) == 2
    assert [record.finish_reason for record in gateway.journal.completions] == ["cancelled", "stop"]


async def test_a_waiting_client_can_leave() -> None:
    gateway = make_gateway(hangs=True)
    first, second = servers = [make_server(BODY) for _ in range(2)]

    async with start_requests(gateway, servers) as tasks:
        await wait_until(lambda: gateway.engine.num_yielded == len(TEXTS))
        second.queue_message("http.disconnect")
        await tasks[1]
        first.queue_message("http.disconnect")
        await tasks[0]

    assert second.messages == []


async def test_the_number_of_requests_that_wait_for_an_identical_one_is_limited() -> None:
    gateway = make_gateway()
    servers = [make_server(BODY) for _ in range(MAX_WAITING + 3)]

    await serve(gateway, servers)

    # The first request, and two that found no place to wait.
    assert len(gateway.engine.requests) == 3
    assert {text_of(server) for server in servers} == {"".join(TEXTS)}


async def test_a_revoked_key_ends_all_identical_requests() -> None:
    gateway = make_gateway(hangs=True)
    servers = [make_server(BODY) for _ in range(3)]

    async with start_requests(gateway, servers) as tasks:
        await wait_until(lambda: gateway.engine.num_yielded == len(TEXTS))
        revoked = make_credential(KEY, revoked_at_ms=1)
        gateway.snapshot_store.replace(make_snapshot(revoked, version=2))
        await asyncio.gather(*tasks)

    assert [server.error_code for server in servers] == ["revoked_api_key"] * 3
    assert len(gateway.engine.requests) == 1


async def test_the_policy_refuses_each_of_several_identical_requests() -> None:
    gateway = make_gateway()
    gateway.exclude({"*": ("a.py",)})
    headers = [(b"x-caret-path", b"a.py")]
    servers = [make_server(BODY, headers=headers) for _ in range(3)]

    await serve(gateway, servers)

    assert {server.status for server in servers} == {403}
    assert gateway.engine.requests == []


async def test_a_shared_suggestion_has_one_outcome() -> None:
    gateway = make_gateway()
    body = {"segments": {"prefix": "a = "}}
    await serve(gateway, [make_server(body) for _ in range(2)])
    (completion,) = gateway.journal.completions
    principal, request_id = make_principal(), RequestId(completion.request_id)

    gateway.plane.suggestions.report(principal, request_id, OutcomeEvent.SHOWN, after_ms=0)
    # As for a second client that gets the same completion.
    gateway.plane.suggestions.add(principal, request_id, "again")
    gateway.plane.suggestions.report(principal, request_id, OutcomeEvent.SHOWN, after_ms=0)

    assert len(gateway.journal.outcomes) == 1
