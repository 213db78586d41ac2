"""A batch: several prompts in one request to `/v1/completions`.

The gateway's fake engine generates two chunks of one token for each prompt: "b" and "c".
"""

import asyncio
import json
from typing import Any

from inference.errors import EngineError
from tests.fakes.asgi import FakeServer, http_scope
from tests.fakes.engine import FakeEngine, chunks_of
from tests.fakes.gateway import KEY, FakeGateway
from tests.fakes.http_gateway import DEADLINE_S, application, send_request
from tests.fakes.polling import wait_until
from tests.fakes.tenants import make_credential, make_snapshot

PATH = "/v1/completions"
PROMPTS = {"prompt": ["a = ", "b = ", "c = "], "suffix": "z"}


def read_events(server: FakeServer) -> list[Any]:
    """Return the events of a streamed response, without the last one, which marks its end."""
    *events, done, after_events = server.body.decode().split("\n\n")
    assert (done, after_events) == ("data: [DONE]", "")
    return [json.loads(event.removeprefix("data: ")) for event in events]


async def test_each_prompt_gets_a_choice_and_a_usage_record() -> None:
    gateway = FakeGateway()

    server = await send_request(gateway, PATH, PROMPTS)

    response = json.loads(server.body)
    assert [(choice["index"], choice["text"]) for choice in response["choices"]] == [
        (0, "bc"),
        (1, "bc"),
        (2, "bc"),
    ]
    assert response["usage"]["completion_tokens"] == 6
    assert len({record.request_id for record in gateway.journal.completions}) == 3
    assert response["id"] == f"cmpl-{gateway.journal.completions[0].request_id}"


async def test_a_streamed_batch_has_one_event_for_each_prompt() -> None:
    body = {**PROMPTS, "stream": True, "stream_options": {"include_usage": True}}

    server = await send_request(FakeGateway(), PATH, body)

    *events, usage = read_events(server)
    choices = [event["choices"][0] for event in events]
    assert [(choice["index"], choice["text"], choice["finish_reason"]) for choice in choices] == [
        (0, "bc", "stop"),
        (1, "bc", "stop"),
        (2, "bc", "stop"),
    ]
    assert usage["usage"]["completion_tokens"] == 6


async def test_a_list_of_one_prompt_is_streamed_chunk_by_chunk() -> None:
    server = await send_request(FakeGateway(), PATH, {"prompt": ["a"], "stream": True})

    texts = [event["choices"][0]["text"] for event in read_events(server)]
    assert texts == ["b", "c", ""]  # the last event has the finish reason


async def test_a_batch_with_an_invalid_prompt_is_rejected_before_anything_is_generated() -> None:
    gateway = FakeGateway()

    server = await send_request(gateway, PATH, {"prompt": ["a", ""], "suffix": ""})

    assert (server.status, server.error_code) == (400, "invalid_field")
    assert gateway.engine.requests == []


async def test_an_error_for_one_prompt_ends_the_batch_and_is_its_response() -> None:
    gateway = FakeGateway(engine=FakeEngine(error_at_start=EngineError("engine_refused", "No.")))

    server = await send_request(gateway, PATH, PROMPTS)

    assert (server.status, server.error_code) == (502, "engine_refused")
    assert len(gateway.engine.requests) == 1


async def test_a_batch_for_an_excluded_file_is_rejected() -> None:
    gateway = FakeGateway()
    gateway.exclude({"*": ("a.py",)})

    server = await send_request(gateway, PATH, PROMPTS, headers=[(b"x-caret-path", b"a.py")])

    assert (server.status, server.error_code) == (403, "path_excluded")


async def test_a_revoked_key_ends_the_batch() -> None:
    gateway = FakeGateway(engine=FakeEngine(chunks_of("b", stop=None), hangs=True))
    server = FakeServer(http_scope(PATH, key=KEY.text))
    server.queue_message("http.request", body=json.dumps(PROMPTS).encode())

    async with application(gateway) as app, asyncio.timeout(DEADLINE_S):
        task = asyncio.create_task(app(server.scope, server.receive, server.send))
        await wait_until(lambda: gateway.engine.num_yielded == 1)
        revoked = make_credential(KEY, revoked_at_ms=1)
        gateway.snapshot_store.replace(make_snapshot(revoked, version=2))
        await task

    assert (server.status, server.error_code) == (401, "revoked_api_key")
    assert (len(gateway.engine.requests), gateway.engine.num_open) == (1, 0)


async def test_a_disconnecting_client_ends_the_batch() -> None:
    gateway = FakeGateway(engine=FakeEngine(chunks_of("b", stop=None), hangs=True))
    server = FakeServer(http_scope(PATH, key=KEY.text))
    server.queue_message("http.request", body=json.dumps(PROMPTS).encode())

    async with application(gateway) as app, asyncio.timeout(DEADLINE_S):
        task = asyncio.create_task(app(server.scope, server.receive, server.send))
        await wait_until(lambda: gateway.engine.num_yielded == 1)
        server.queue_message("http.disconnect")
        await task

    assert (len(gateway.engine.requests), gateway.engine.num_open) == (1, 0)
    assert [record.finish_reason for record in gateway.journal.completions] == ["cancelled"]
