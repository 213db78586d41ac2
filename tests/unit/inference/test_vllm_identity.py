"""The identity that a vLLM server reports, read from a small server that stands in for vLLM."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from inference.pools.discovery.pool_members import NameNotFound, Unreachable
from inference.pools.discovery.replica_identity import PROBE_TEXT, ReplicaIdentity
from inference.pools.pool_config import Replica
from inference.pools.vllm.identity import VllmIdentity
from tests.fakes.streamed_response import stream_in_two_parts

MODELS = {"object": "list", "data": [{"id": "demo", "root": "/models/demo", "max_model_len": 4096}]}
METRICS = (
    "# TYPE vllm:cache_config_info gauge\n"
    'vllm:cache_config_info{cache_dtype="auto",engine="0",block_size="32"} 1.0\n'
)


@asynccontextmanager
async def _server(models: Any, tokens: Any, metrics: str) -> AsyncIterator[str]:
    async def tokenize(request: web.Request) -> web.Response:
        body = await request.json()
        assert body == {"model": "demo", "prompt": PROBE_TEXT, "add_special_tokens": False}
        return web.json_response(tokens)

    async def list_models(_request: web.Request) -> web.Response:
        return web.json_response(models)

    async def serve_metrics_page(request: web.Request) -> web.StreamResponse:
        return await stream_in_two_parts(request, metrics)

    app = web.Application()
    app.router.add_post("/tokenize", tokenize)
    app.router.add_get("/v1/models", list_models)
    app.router.add_get("/metrics", serve_metrics_page)
    async with _running_application(app) as url:
        yield url


@asynccontextmanager
async def _running_application(app: web.Application) -> AsyncIterator[str]:
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def _fetch(url: str) -> ReplicaIdentity:
    async with aiohttp.ClientSession() as session:
        return await VllmIdentity(session).fetch_identity(Replica(name="", url=url), "demo")


async def test_models_tokenizer_and_block_size_are_read() -> None:
    async with _server(MODELS, {"count": 2, "tokens": [1, 2]}, METRICS) as url:
        identity = await _fetch(url)

    assert identity == ReplicaIdentity(
        roots={"demo": "/models/demo"},
        max_context_tokens={"demo": 4096},
        token_ids=(1, 2),
        block_tokens=32,
    )


async def test_missing_information_is_left_empty() -> None:
    async with _running_application(web.Application()) as url:
        assert await _fetch(url) == ReplicaIdentity()


async def test_malformed_information_is_left_empty() -> None:
    async with _server({"data": 1}, {"tokens": "x"}, "vllm:cache_config_info{} 1.0\n") as url:
        assert await _fetch(url) == ReplicaIdentity()


async def test_an_unreachable_engine_is_distinguished_from_an_unknown_host_name() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]  # nothing listens here once the server is closed

    with pytest.raises(Unreachable) as unreachable:
        await _fetch(f"http://127.0.0.1:{port}")
    with pytest.raises(NameNotFound):
        await _fetch("http://engine.invalid:8000")
    assert not isinstance(unreachable.value, NameNotFound)
