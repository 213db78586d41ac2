"""The metrics of a vLLM server, read from a small server that stands in for vLLM."""

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer

from inference.pools.pool_config import Replica
from inference.pools.vllm.monitoring import VllmMetrics
from tests.fakes.streamed_response import stream_in_two_parts

PAGE = (
    'vllm:generation_tokens_total{engine="0"} 1234.0\n'
    'vllm:spec_decode_num_accepted_tokens_total{engine="0"} 123456.0\n'
)


async def _read_metrics() -> dict[str, list[float]] | None:
    async def serve_page(request: web.Request) -> web.StreamResponse:
        return await stream_in_two_parts(request, PAGE)

    app = web.Application()
    app.router.add_get("/metrics", serve_page)
    async with TestServer(app) as server, aiohttp.ClientSession() as session:
        replica = Replica(name="", url=str(server.make_url("")).rstrip("/"))
        return await VllmMetrics(session).read(replica)


async def test_a_page_that_arrives_in_parts_is_read_to_its_end() -> None:
    assert await _read_metrics() == {
        "vllm:generation_tokens_total": [1234.0],
        "vllm:spec_decode_num_accepted_tokens_total": [123456.0],
    }
