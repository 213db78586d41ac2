"""Invalid frames: each gets a stable code, and neither the connection nor other tenants suffer."""

import asyncio
import json
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from inference.gateway.protocol.frames import MAX_ID_CHARS
from inference.gateway.receive import MAX_FILES, MAX_NAME_CHARS
from tests.functional.gateway.gateway_stack import Frame, Site, receive, request_completion

pytestmark = pytest.mark.engine

COMPLETE = {"type": "complete", "id": "7", "prefix": "x = "}
MB = 1024 * 1024
# For each case: the frame, and the ID and the code in the error frame. The ID is "" if the frame
# has no valid ID, or if the gateway cannot read it.
BAD_FRAMES: dict[str, tuple[str | bytes, str, str]] = {
    "no JSON": ("{nonsense", "", "invalid_json"),
    "an empty frame": ("", "", "invalid_json"),
    "half a frame": ('{"type":"complete","id":"7","pre', "", "invalid_json"),
    "a list": ("[1, 2]", "", "invalid_field"),
    "a number": ("7", "", "invalid_field"),
    "a null": ("null", "", "invalid_field"),
    "a lone surrogate": ('{"type":"complete","id":"7","prefix":"\\ud800"}', "", "invalid_json"),
    "deep nesting": ('{"type":"complete","x":' + "[" * 100_000, "", "invalid_json"),
    "an unknown type": ('{"type":"chat","id":"7"}', "7", "unknown_type"),
    "no type": ('{"id":"7"}', "7", "unknown_type"),
    "a type that is no text": ('{"type":7,"id":"7"}', "", "invalid_field"),
    "no id": ('{"type":"complete","prefix":"x"}', "", "invalid_field"),
    "an empty id": (json.dumps({**COMPLETE, "id": ""}), "", "invalid_field"),
    "a long id": (
        json.dumps({**COMPLETE, "id": "7" * (MAX_ID_CHARS + 1)}),
        "",
        "invalid_field",
    ),
    "no prefix": ('{"type":"complete","id":"7"}', "7", "invalid_field"),
    "a prefix of the wrong type": ('{"type":"complete","id":"7","prefix":1}', "7", "invalid_field"),
    "an unknown mode": (json.dumps({**COMPLETE, "mode": "poem"}), "7", "unknown_mode"),
    "a chat without messages": (json.dumps({**COMPLETE, "mode": "chat"}), "7", "invalid_field"),
    "an unknown language": (json.dumps({**COMPLETE, "language": "p"}), "7", "unknown_language"),
    "no tokens": (json.dumps({**COMPLETE, "max_tokens": 0}), "7", "invalid_field"),
    "half a token": (json.dumps({**COMPLETE, "max_tokens": 0.5}), "7", "invalid_field"),
    "files of the wrong type": (json.dumps({**COMPLETE, "files": [1]}), "7", "invalid_field"),
    "a prefix of a megabyte": (json.dumps({**COMPLETE, "prefix": "x" * MB}), "7", "too_large"),
    "a suffix of a megabyte": (json.dumps({**COMPLETE, "suffix": "x" * MB}), "7", "too_large"),
    "a long path": (
        json.dumps({**COMPLETE, "path": "x" * (MAX_NAME_CHARS + 1)}),
        "7",
        "too_large",
    ),
    "many files": (
        json.dumps({**COMPLETE, "files": [{"path": "a", "text": ""}] * (MAX_FILES + 1)}),
        "7",
        "too_large",
    ),
    "large files": (
        json.dumps({**COMPLETE, "files": [{"path": "a", "text": "x" * MB}] * 5}),
        "7",
        "too_large",
    ),
    # Above MAX_FRAME_CHARS. The gateway answers it without parsing it.
    "a frame of ten megabytes": (
        json.dumps({**COMPLETE, "prefix": "x" * 10 * MB}),
        "",
        "too_large",
    ),
    "a binary frame": (json.dumps(COMPLETE).encode(), "", "binary_frame"),
    "an outcome of an unknown completion": (
        '{"type":"outcome","id":"9","event":"shown"}',
        "9",
        "unknown_id",
    ),
    "an unknown outcome": ('{"type":"outcome","id":"7","event":"loved"}', "7", "invalid_field"),
}


@pytest.mark.parametrize("name", BAD_FRAMES)
async def test_an_invalid_frame_gets_its_code_and_the_connection_stays_open(
    site: Site, name: str
) -> None:
    frame, identifier, code = BAD_FRAMES[name]

    async with site.open_websocket() as socket, site.stream(site.globex_key) as other_tenant:
        await socket.send(frame)
        error = await receive(socket)
        _, other_done = await request_completion(other_tenant, _small("1"))
        await socket.send(json.dumps({"type": "complete", **_small("after")}))
        while (answer := await receive(socket))["type"] == "delta":
            pass

    assert (error["type"], error["id"], error["code"]) == ("error", identifier, code)
    assert error["message"].endswith(".")
    assert (answer["type"], answer["id"]) == ("done", "after")
    assert other_done["finish_reason"] in ("stop", "length", "filtered")


# The WebSocket server closes the connection for frames of more than four times MAX_FRAME_CHARS.
@pytest.mark.parametrize(
    ("frame", "close_code"),
    [(b"\xff\xfe broken", 1007), ("x" * 30 * MB, 1009)],
    ids=["text that is not UTF-8", "a frame of thirty megabytes"],
)
async def test_a_fatal_frame_closes_only_its_own_connection(
    site: Site, frame: str | bytes, close_code: int
) -> None:
    async with site.open_websocket() as socket, site.stream(site.globex_key) as other_tenant:
        with pytest.raises(ConnectionClosed) as closed:
            # `text=True` sends bytes, too, as a text frame.
            await asyncio.gather(socket.send(frame, text=True), receive(socket))
        _, done = await request_completion(other_tenant, _small("1"))

    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == close_code
    assert done["finish_reason"] in ("stop", "length", "filtered")


async def test_a_duplicate_id_is_rejected(site: Site) -> None:
    async with site.open_websocket() as socket:
        await socket.send(json.dumps({"type": "complete", **_small("1")}))
        while (await receive(socket))["type"] == "delta":
            pass
        await socket.send(json.dumps({"type": "complete", **_small("1")}))
        error = await receive(socket)

    assert (error["id"], error["code"]) == ("1", "duplicate_id")


@pytest.mark.parametrize("identifier", ["ended", "unheard-of"])
async def test_a_late_or_unknown_cancel_is_ignored(site: Site, identifier: str) -> None:
    async with site.stream() as stream:
        await request_completion(stream, _small("ended"))
        await stream.send({"type": "cancel", "id": identifier})
        await stream.send({"type": "complete", **_small("next")})
        answers = [await stream.receive()]
        while answers[-1]["type"] == "delta":
            answers.append(await stream.receive())

    assert {answer["id"] for answer in answers} == {"next"}, "the cancel frame was answered"
    assert answers[-1]["type"] == "done"


async def test_a_huge_max_tokens_is_capped(site: Site) -> None:
    async with site.stream() as stream:
        _, done = await request_completion(stream, {**_small("1"), "max_tokens": 10**30})

    assert done["finish_reason"] in ("stop", "length", "filtered")


async def test_unknown_fields_are_ignored(site: Site) -> None:
    async with site.stream() as stream:
        _, done = await request_completion(
            stream, {**_small("1"), "temperature": 7, "cache_salt": "other"}
        )

    assert done["finish_reason"] in ("stop", "length", "filtered")


def _small(identifier: str) -> Frame:
    frame: dict[str, Any] = {"id": identifier, "prefix": "import ", "max_tokens": 2}
    return frame
