"""Invalid HTTP requests: each gets a stable code and status."""

import asyncio
import json
from io import BytesIO
from urllib.parse import urlsplit

import pytest

from inference.consumers.http.http_consumer import MAX_RECEIVE_S
from tests.functional.gateway.gateway_stack import Site, request_completion

pytestmark = pytest.mark.engine

MB = 1024 * 1024
# For each case: the body, and the status and the error code of the response.
BAD_BODIES = {
    "no body": (b"", 400, "invalid_json"),
    "no JSON": (b"prompt=x", 400, "invalid_json"),
    "half a body": (b'{"prompt": "x', 400, "invalid_json"),
    "text that is not UTF-8": (b'{"prompt": "\xff\xfe"}', 400, "invalid_json"),
    "binary": (bytes(range(256)), 400, "invalid_json"),
    "deep nesting": (b'{"x":' + b"[" * 100_000, 400, "invalid_json"),
    "a list": (b"[]", 400, "invalid_field"),
    "no prompt": (b"{}", 400, "invalid_field"),
    "a prompt that is no text": (b'{"prompt": 7}', 400, "invalid_field"),
    "token ids": (b'{"prompt": [1, 2, 3]}', 400, "invalid_field"),
    "no prompts": (b'{"prompt": []}', 400, "invalid_field"),
    "an empty prompt": (b'{"prompt": "", "suffix": ""}', 400, "invalid_field"),
    "an unsupported field": (b'{"prompt": "x", "echo": true}', 400, "unsupported_parameter"),
    "no choices": (b'{"prompt": "x", "n": 0}', 400, "invalid_field"),
    "an empty stop": (b'{"prompt": "x", "stop": ""}', 400, "invalid_field"),
    # Without a suffix, the gateway passes the prompt to the engine as it is, and truncates nothing.
    "a long raw prompt": (b'{"prompt": "' + b"x y " * 4000 + b'"}', 400, "prompt_too_long"),
    "a prompt of a megabyte": (b'{"prompt": "' + b"x" * MB + b'"}', 413, "too_large"),
    "a body of ten megabytes": (b'{"prompt": "' + b"x" * 10 * MB + b'"}', 413, "too_large"),
}


@pytest.mark.parametrize("name", BAD_BODIES)
async def test_an_invalid_body_gets_its_error_code(site: Site, name: str) -> None:
    body, status, code = BAD_BODIES[name]

    async with site.http() as session:
        async with session.post("/v1/completions", data=BytesIO(body)) as response:
            error = (await response.json())["error"]
        async with session.post("/v1/completions", json={"prompt": "x", "max_tokens": 1}) as after:
            answer = await after.json()

    assert (response.status, error["code"]) == (status, code)
    assert error["message"].endswith(".")
    assert error["type"] == "invalid_request_error"
    assert answer["object"] == "text_completion"


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE"])
async def test_completions_allow_only_post_and_options(site: Site, method: str) -> None:
    async with site.http() as session, session.request(method, "/v1/completions") as response:
        body = await response.text()

    assert (response.status, response.headers["Allow"]) == (405, "POST, OPTIONS")
    assert method == "HEAD" or json.loads(body)["error"]["code"] == "method_not_allowed"


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v1/completions/", "/v1/stream", "/metrics", "/admin/"]
)
async def test_other_paths_are_not_found(site: Site, path: str) -> None:
    async with site.http() as session, session.get(path) as response:
        error = (await response.json())["error"]

    assert (response.status, error["code"]) == (404, "not_found")


async def test_the_health_check_needs_no_key(site: Site) -> None:
    async with site.http("") as session, session.get("/healthz") as response:
        assert (response.status, await response.json()) == (200, {"status": "ok"})


async def test_an_unauthenticated_body_is_not_parsed(site: Site) -> None:
    async with (
        site.http("nonsense") as session,
        session.post("/v1/completions", data=b"{nonsense") as response,
    ):
        error = (await response.json())["error"]

    assert (response.status, error["code"]) == (401, "invalid_api_key")


async def test_a_slow_body_times_out_and_delays_no_other_request(site: Site) -> None:
    parts = urlsplit(site.url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    head = (
        f"POST /v1/completions HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        f"Authorization: Bearer {site.acme_key}\r\nContent-Length: 1000\r\n\r\n"
    )
    try:
        writer.write(head.encode() + b'{"prompt"')
        # The body of the answer is {"error": {...}}.
        slow_answer = asyncio.create_task(reader.readuntil(b"}}"))
        async with site.stream(site.globex_key) as other_tenant:
            await request_completion(
                other_tenant, {"id": "1", "prefix": "import ", "max_tokens": 2}
            )
            assert not slow_answer.done()
        async with asyncio.timeout(MAX_RECEIVE_S + 60):
            answer = await slow_answer
    finally:
        slow_answer.cancel()
        writer.close()
        await writer.wait_closed()

    status_line, _, after_status = answer.partition(b"\r\n")
    assert b" 408 " in status_line
    assert json.loads(after_status.partition(b"\r\n\r\n")[2])["error"]["code"] == "too_slow"
