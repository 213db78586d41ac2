"""Every HTTP endpoint with clients that have no key or a wrong one, are slow, or disconnect."""

import asyncio
import json
from io import BytesIO
from typing import Any, cast
from urllib.parse import urlsplit

import aiohttp
import msgspec
import pytest
import redis

from caret.contracts.snapshot import SNAPSHOTS, decode_snapshot
from inference.consumers.application import DIALECTS, OTHER_CONSUMERS
from inference.consumers.http.http_consumer import MAX_RECEIVE_S, HealthConsumer
from tests.benchmarks.installation import new_tenant, publish, root_secret_of
from tests.functional.gateway.gateway_stack import Site, wait_until
from tests.integration.gateway.engine_control import held_engine, is_idle, wait_until_busy
from tests.integration.gateway.sample_requests import SAMPLE_REQUESTS, SampleRequest

PATHS_WITHOUT_KEY = {
    path for path, consumer in OTHER_CONSUMERS.items() if consumer is HealthConsumer
}
PATHS_WITH_KEY = sorted({*DIALECTS, *OTHER_CONSUMERS} - PATHS_WITHOUT_KEY)
PATHS_WITH_BODY = sorted({*DIALECTS, "/api/embed", "/api/embeddings", "/api/show", "/v1/events"})
METHODS = ("GET", "POST", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS")
MB = 1024 * 1024
SECRET = "planted-secret"
BAD_BODIES = {
    "nothing": b"",
    "not JSON": SECRET.encode(),
    "half a body": f'{{"prompt":"{SECRET}'.encode(),
    "not UTF-8": b'{"prompt":"\xff\xfe","model":"\xff","type":"\xff"}',
    "binary": bytes(range(256)),
    "deep nesting": b'{"x":' + b"[" * 100_000,
    "a list": f'["{SECRET}"]'.encode(),
    "a text": f'"{SECRET}"'.encode(),
    "wrong types": json.dumps(
        {
            "prompt": {SECRET: 1},
            "messages": SECRET,
            "input_prefix": [SECRET],
            "segments": SECRET,
            "options": SECRET,
            "model": [SECRET],
            "type": [SECRET],
        }
    ).encode(),
    "huge numbers": b'{"prompt":"x","max_tokens":1' + b"0" * 400 + b',"n_predict":1e999,"model":7}',
    "duplicate field": f'{{"prompt":"x","prompt":["{SECRET}",1],"model":7}}'.encode(),
}


def method_of(path: str) -> str:
    return "POST" if path in PATHS_WITH_BODY else "GET"


@pytest.mark.parametrize("path", PATHS_WITH_KEY)
async def test_requests_without_a_valid_key_are_refused(quick_site: Site, path: str) -> None:
    # The last character of a key belongs to its checksum.
    wrong_checksum = quick_site.acme_key[:-1] + ("y" if quick_site.acme_key[-1] == "x" else "x")
    invalid_credentials: list[dict[str, str]] = [
        {},
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer nonsense"},
        {"Authorization": f"Basic {quick_site.acme_key}"},
        {"Authorization": f"Bearer {wrong_checksum}"},
        {"api-key": "nonsense"},
        {"api-key": quick_site.acme_key + quick_site.acme_key},
    ]
    async with aiohttp.ClientSession(quick_site.url) as session:
        for headers in invalid_credentials:
            # A valid key in the URL must not count.
            query = f"?key={quick_site.acme_key}&api-key={quick_site.acme_key}"
            async with session.request(
                method_of(path), path + query, headers=headers, data=b"{"
            ) as response:
                assert response.status == 401, headers


async def test_a_revoked_key_is_refused_at_every_endpoint(quick_site: Site) -> None:
    snapshot, key = new_tenant("initech", root_secret=root_secret_of(quick_site.home.paths))
    publish(quick_site.home.paths, snapshot)
    (credential,) = snapshot.credentials
    revoked = msgspec.structs.replace(credential, revoked_at_ms=1)

    async def list_refusing_paths() -> list[str]:
        refusing_paths = []
        async with quick_site.http(key) as session:
            for path in PATHS_WITH_KEY:
                body = b"{}" if path in PATHS_WITH_BODY else None
                async with session.request(method_of(path), path, data=body) as response:
                    if response.status == 401:
                        refusing_paths.append(path)
        return refusing_paths

    async def is_accepted_everywhere() -> bool:
        return await list_refusing_paths() == []

    async def is_refused_everywhere() -> bool:
        return await list_refusing_paths() == PATHS_WITH_KEY

    assert await wait_until(is_accepted_everywhere)
    publish(
        quick_site.home.paths, msgspec.structs.replace(snapshot, version=2, credentials=(revoked,))
    )
    # Gateways learn of a revocation within a second, but sooner than this test's requests end.
    assert await wait_until(is_refused_everywhere)


@pytest.mark.parametrize("name", SAMPLE_REQUESTS)
async def test_a_completion_is_recorded_for_the_keys_tenant(quick_site: Site, name: str) -> None:
    sample, before = SAMPLE_REQUESTS[name], await quick_site.num_records()

    for key in (quick_site.acme_key, quick_site.globex_key):
        async with (
            quick_site.http(key) as session,
            session.post(sample.path, json=sample.body_with(4)) as response,
        ):
            assert response.status == 200
            await response.read()

    records = await quick_site.records_after(before, count=2)
    slugs = _read_slugs(quick_site)
    assert sorted(slugs[record.tenant_id] for record in records) == ["acme", "globex"]


def _read_slugs(site: Site) -> dict[str, str]:
    """Return the slugs of all published tenants, by tenant ID."""
    with redis.Redis.from_url(site.home.paths.redis_url.read_text().strip()) as connection:
        snapshots = [decode_snapshot(data) for data in cast(Any, connection.hvals(SNAPSHOTS))]
    return {snapshot.tenant_id: snapshot.slug for snapshot in snapshots}


@pytest.mark.parametrize("path", PATHS_WITH_BODY)
async def test_a_malformed_body_is_a_client_error_and_is_not_echoed(
    quick_site: Site, path: str
) -> None:
    texts, statuses = {}, {}
    async with quick_site.http() as session:
        for name, body in BAD_BODIES.items():
            async with session.post(path, data=body) as response:
                texts[name], statuses[name] = await response.text(), response.status

    assert {name: status for name, status in statuses.items() if status not in (400, 413)} == {}
    assert {name: text for name, text in texts.items() if SECRET in text} == {}
    for text in texts.values():
        json.loads(text)


@pytest.mark.parametrize("path", PATHS_WITH_KEY)
async def test_a_body_of_ten_megabytes_is_rejected(quick_site: Site, path: str) -> None:
    body = BytesIO(b'{"prompt":"' + b"x" * 10 * MB + b'"}')

    async with (
        quick_site.http() as session,
        session.request(method_of(path), path, data=body) as response,
    ):
        assert response.status == 413


@pytest.mark.parametrize("path", PATHS_WITH_KEY)
async def test_methods_are_refused_unless_options_lists_them(quick_site: Site, path: str) -> None:
    async with quick_site.http() as session:
        async with session.options(path) as response:
            allowed_methods = response.headers["Allow"].split(", ")
        refused_methods = set()
        for method in METHODS:
            async with session.request(method, path) as response:
                await response.read()
            if response.status == 405:
                refused_methods.add(method)
                assert response.headers["Allow"].split(", ") == allowed_methods

    assert method_of(path) in allowed_methods
    assert refused_methods == set(METHODS) - set(allowed_methods)
    assert {"PUT", "PATCH", "DELETE"} <= refused_methods


@pytest.mark.parametrize("path", PATHS_WITH_KEY)
async def test_options_and_a_foreign_origin_reveal_only_the_methods(
    quick_site: Site, path: str
) -> None:
    headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    async with (
        aiohttp.ClientSession(quick_site.url) as session,
        session.options(path, headers=headers) as response,
    ):
        body = await response.read()

    assert (response.status, body) == (204, b"")
    assert not [name for name in response.headers if name.lower().startswith("access-control")]


async def test_slow_bodies_time_out_and_delay_no_other_request(
    quick_site: Site,
) -> None:
    async with asyncio.timeout(MAX_RECEIVE_S + 60), asyncio.TaskGroup() as group:
        slow_requests = {
            path: group.create_task(_send_unfinished_body(quick_site, path))
            for path in PATHS_WITH_BODY
        }
        sample = SAMPLE_REQUESTS["/v1/completions whole"]
        async with (
            quick_site.http(quick_site.globex_key) as session,
            session.post(sample.path, json=sample.body_with(4)) as response,
        ):
            assert response.status == 200
        assert not any(task.done() for task in slow_requests.values())
    responses = {path: task.result() for path, task in slow_requests.items()}

    assert {response.splitlines()[0].split()[1] for response in responses.values()} == {"408"}
    # The gateway's own message: some seconds later, the web server would also send a 408.
    message = f"The body did not arrive within {MAX_RECEIVE_S:.0f} s."
    assert [path for path, response in responses.items() if message not in response] == []


@pytest.mark.parametrize("name", SAMPLE_REQUESTS)
async def test_disconnecting_cancels_the_completion_in_every_protocol(
    quick_site: Site, name: str
) -> None:
    sample, before = SAMPLE_REQUESTS[name], await quick_site.num_records()
    engine_url = quick_site.engine_url

    async with held_engine(engine_url):
        async with quick_site.http() as session:
            request = asyncio.create_task(_request_without_end(session, sample))
            if sample.is_streamed:
                await request
            else:
                await wait_until_busy(engine_url)
                request.cancel()
                await asyncio.wait([request])

        assert await wait_until(lambda: is_idle(engine_url))
    (record,) = await quick_site.records_after(before)
    assert record.finish_reason == "cancelled"


async def _request_without_end(session: aiohttp.ClientSession, sample: SampleRequest) -> None:
    """Send the request, and disconnect after the first text. Without streaming, there is none."""
    response = await session.post(sample.path, json=sample.body_with(512))
    await response.content.readline()
    response.close()


async def test_oversized_headers_are_refused_and_other_requests_succeed(quick_site: Site) -> None:
    too_many = {f"x-{number}": "y" for number in range(101)}  # the limit is 100
    too_long_path = "/v1/models?" + "x" * 65_536
    async with quick_site.http() as session:
        for path, headers in ((too_long_path, {}), ("/v1/models", too_many)):
            async with session.get(path, headers=headers) as response:
                assert response.status == 431
        async with session.get("/v1/models") as response:
            assert response.status == 200


async def _send_unfinished_body(site: Site, path: str) -> str:
    """Send only the first bytes of a body, and return the whole response."""
    url = urlsplit(site.url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {url.netloc}\r\n"
        f"Authorization: Bearer {site.acme_key}\r\nContent-Length: 1000\r\n"
        "Connection: close\r\n\r\n"
    )
    try:
        writer.write(head.encode() + b'{"prompt"')
        return (await reader.read()).decode()
    finally:
        writer.close()
        await writer.wait_closed()
