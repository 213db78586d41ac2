"""The identity that a vLLM server reports, read from a small server."""

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

MODELS = {"object": "list", "data": [{"id": "demo", "root": "/models/demo", "max_model_len": 4096}]}
METRICS = (
    "# TYPE vllm:cache_config_info gauge\n"
    'vllm:cache_config_info{block_size="32",cache_dtype="auto",engine="0"} 1.0\n'
)


@asynccontextmanager
async def _server(models: Any, tokens: Any, metrics: str) -> AsyncIterator[str]:
    async def tokenize(request: web.Request) -> web.Response:
        asked = await request.json()
        assert asked == {"model": "demo", "prompt": PROBE_TEXT, "add_special_tokens": False}
        return web.json_response(tokens)

    async def list_models(_request: web.Request) -> web.Response:
        return web.json_response(models)

    async def tell(_request: web.Request) -> web.Response:
        return web.Response(text=metrics)

    app = web.Application()
    app.router.add_post("/tokenize", tokenize)
    app.router.add_get("/v1/models", list_models)
    app.router.add_get("/metrics", tell)
    async with _served(app) as url:
        yield url


@asynccontextmanager
async def _served(app: web.Application) -> AsyncIterator[str]:
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def _ask(url: str) -> ReplicaIdentity:
    async with aiohttp.ClientSession() as session:
        return await VllmIdentity(session).fetch_identity(Replica(name="", url=url), "demo")


async def test_models_tokenizer_and_blocks_are_read() -> None:
    async with _server(MODELS, {"count": 2, "tokens": [1, 2]}, METRICS) as url:
        said = await _ask(url)

    assert said == ReplicaIdentity(
        roots={"demo": "/models/demo"},
        max_context_tokens={"demo": 4096},
        token_ids=(1, 2),
        block_tokens=32,
    )


async def test_what_it_does_not_know_is_not_guessed() -> None:
    async with _served(web.Application()) as url:
        assert await _ask(url) == ReplicaIdentity()


async def test_what_it_garbles_is_not_guessed_either() -> None:
    async with _server({"data": 1}, {"tokens": "x"}, "vllm:cache_config_info{} 1.0\n") as url:
        assert await _ask(url) == ReplicaIdentity()


async def test_nobody_there_is_told_apart_from_no_such_name() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    with pytest.raises(Unreachable) as nobody:
        await _ask(f"http://127.0.0.1:{port}")
    with pytest.raises(NameNotFound):
        await _ask("http://engine.invalid:8000")
    assert not isinstance(nobody.value, NameNotFound)
