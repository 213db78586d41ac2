"""A client that cancels or disconnects frees the engine at once, and the completion is recorded."""

import asyncio
import json

import pytest

from tests.functional.gateway.gateway_stack import Frame, Site, receive, wait_until

pytestmark = pytest.mark.engine
# IDs of requests. On a busy machine, a completion may end before its client acts: try again.
_TRIES = ("0", "1", "2", "3", "4")


async def test_a_cancelled_completion_ends_and_frees_the_engine(
    site: Site, long_frame: Frame
) -> None:
    async with site.stream() as stream:
        for identifier in _TRIES:
            await stream.send({"type": "complete", **long_frame, "id": identifier})
            first = await stream.receive()
            await stream.send({"type": "cancel", "id": identifier})
            while (answer := await stream.receive())["type"] == "delta":
                pass
            if answer["finish_reason"] == "cancelled":
                break

        num_running = await _num_running_at_next_token(site, long_frame)

    assert first["type"] == "delta"
    assert (answer["type"], answer["finish_reason"]) == ("done", "cancelled")
    assert num_running <= 1  # the next request itself
    record = await site.record_of(answer["meta"]["request_id"])
    # The engine reports cached tokens at the end of a completion. It was stopped before.
    assert (record.finish_reason, record.cached_tokens) == ("cancelled", None)
    assert 0 < record.generated_tokens < long_frame["max_tokens"]


async def test_no_frame_follows_the_end_of_a_cancelled_completion(
    site: Site, long_frame: Frame
) -> None:
    async with site.stream() as stream:
        await stream.send({"type": "complete", **long_frame, "id": "1"})
        await stream.receive()
        await stream.send({"type": "cancel", "id": "1"})
        while (await stream.receive())["type"] == "delta":
            pass

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):  # the engine would have written many more tokens
                await stream.receive()


async def test_a_completion_cancelled_before_its_first_token_is_recorded_too(
    site: Site, long_frame: Frame
) -> None:
    async with site.stream() as stream:
        # On a busy machine the first token may come before the cancel frame is sent: try again.
        for identifier in _TRIES:
            await stream.send({"type": "complete", **long_frame, "id": identifier})
            await stream.send({"type": "cancel", "id": identifier})
            num_deltas = 0
            while (done := await stream.receive())["type"] == "delta":
                num_deltas += 1
            if num_deltas == 0:
                break

    assert num_deltas == 0, "in every try, a token came before the cancel frame"
    assert (done["type"], done.get("finish_reason")) == ("done", "cancelled"), done
    record = await site.record_of(done["meta"]["request_id"])
    assert record.finish_reason == "cancelled"


async def test_a_newer_request_for_the_same_file_supersedes_the_one_before(
    site: Site, long_frame: Frame
) -> None:
    async with site.stream() as stream:
        frame = {"type": "complete", **long_frame, "path": "a.py"}
        for identifier in _TRIES:
            await stream.send({**frame, "id": f"old-{identifier}"})
            await stream.receive()
            new_id = f"new-{identifier}"
            await stream.send({**frame, "id": new_id, "max_tokens": 8})
            answers: list[Frame] = []
            while not answers or (answers[-1]["id"], answers[-1]["type"]) != (new_id, "done"):
                answers.append(await stream.receive())
            (old,) = (answer for answer in answers[:-1] if answer["type"] == "done")
            if old["finish_reason"] == "superseded":
                break

    assert old["finish_reason"] == "superseded"
    assert answers[-1]["finish_reason"] != "superseded"
    assert await site.becomes_idle()
    assert (await site.record_of(old["meta"]["request_id"])).finish_reason == "superseded"


async def test_a_newer_request_for_another_file_supersedes_nothing(
    site: Site, long_frame: Frame
) -> None:
    async with site.stream() as stream:
        for name in ("a", "b"):
            await stream.send(
                {"type": "complete", **long_frame, "id": name, "path": name, "max_tokens": 16}
            )
        ends: list[str] = []
        while len(ends) < 2:
            answer = await stream.receive()
            ends += [answer["finish_reason"]] if answer["type"] == "done" else []

    assert "superseded" not in ends


@pytest.mark.parametrize(
    "is_abrupt", [False, True], ids=["closes the WebSocket", "aborts the TCP connection"]
)
async def test_a_disconnecting_client_frees_the_engine(
    site: Site, long_frame: Frame, is_abrupt: bool
) -> None:
    for _ in _TRIES:
        num_records = await site.num_records()
        async with site.open_websocket() as socket:
            await socket.send(json.dumps({"type": "complete", **long_frame, "id": "1"}))
            await receive(socket)
            if is_abrupt:
                socket.transport.abort()
        num_running = await _num_running_at_next_token(site, long_frame)

        assert num_running <= 1  # the next request itself
        records = await site.records_after(num_records, count=2)
        if any(record.finish_reason == "cancelled" for record in records):
            break
    assert "cancelled" in [record.finish_reason for record in records]


async def test_a_dropped_http_connection_frees_the_engine(site: Site, long_frame: Frame) -> None:
    body = {"prompt": long_frame["prefix"], "max_tokens": 512, "stream": True}
    for _ in _TRIES:
        num_records = await site.num_records()
        async with site.http() as session, session.post("/v1/completions", json=body) as response:
            await response.content.readline()
            response.close()

        assert await site.becomes_idle()
        (record,) = await site.records_after(num_records)
        if record.finish_reason == "cancelled":
            break
    assert (record.finish_reason, record.protocol) == ("cancelled", "openai")
    assert record.generated_tokens < 512


async def test_disconnecting_before_the_response_frees_the_engine(
    site: Site, long_frame: Frame
) -> None:
    body = {"prompt": long_frame["prefix"], "max_tokens": 512}
    for _ in _TRIES:
        num_records = await site.num_records()
        async with site.http() as session:
            request = asyncio.ensure_future(session.post("/v1/completions", json=body))

            async def is_running() -> bool:
                return await site.num_running() > 0

            assert await wait_until(is_running)
            request.cancel()
            await asyncio.wait([request])

        assert await site.becomes_idle()
        (record,) = await site.records_after(num_records)
        if record.finish_reason == "cancelled":
            break
    assert record.finish_reason == "cancelled"


async def _num_running_at_next_token(site: Site, frame: Frame) -> int:
    """Send another request, and count the engine's running requests when its first text arrives."""
    async with site.stream() as stream:
        await stream.send({"type": "complete", **frame, "id": "next", "max_tokens": 16})
        await stream.receive()
        num_running = await site.num_running()
        while (await stream.receive())["type"] != "done":
            pass
    return num_running
