"""The routes on which a client gets a completion: directly from vLLM, or through the gateway by
WebSocket or HTTP.

Each route requests a completion of one token, and measures the time until its text arrives and
until it ends. The clock starts before the request is written.
"""

import time
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final, Protocol

import aiohttp
import msgspec

from caret.client.websocket_client import CompletionStream, open_stream
from caret.contracts.usage import FinishReason
from caret.foundation.ids import CacheSalt
from inference.pools.engine import EngineRequest
from inference.pools.pool_config import Pool

# the gateway's own body, not a copy
from inference.pools.vllm.engine import _build_body as body_of_gateway
from tests.benchmarks.synthetic_code import SUFFIX, Sample

MAX_TOKENS: Final = 1
_DATA: Final = b"data: "


@dataclass(frozen=True, slots=True)
class FirstToken:
    text_ms: float | None  # None: it had no text, or the gateway's filter held it back
    end_ms: float


class Route(Protocol):
    name: str

    async def first_token(self, sample: Sample, pool: Pool, mode: str) -> FirstToken: ...


class Direct:
    """vLLM's own server, in a separate cache namespace.

    Requests carry the token IDs that the gateway would send, or the text, as from a client without
    a gateway.
    """

    def __init__(self, session: aiohttp.ClientSession, *, sends_text: bool) -> None:
        self.name = "direct_text" if sends_text else "direct"
        self._session = session
        self._sends_text = sends_text
        self._salt = CacheSalt(uuid.uuid4().hex)

    async def first_token(self, sample: Sample, pool: Pool, mode: str) -> FirstToken:
        replica = pool.replicas[0]
        request = EngineRequest(
            pool=pool,
            replica=replica,
            token_ids=sample.prompt.token_ids,
            stop_token_ids=sample.prompt.stop_token_ids,
            stop=(),
            max_tokens=MAX_TOKENS,
            salt=self._salt,
            priority=1,
        )
        prompt = {"prompt": sample.text} if self._sends_text else {}
        body = msgspec.json.encode(body_of_gateway(request) | prompt)
        return await _post(self._session, f"{replica.url}/v1/completions", body, key=None)


class Http:
    """`POST /v1/completions` with prompt and suffix, answered by server-sent events: mode fim
    only."""

    name = "http"

    def __init__(self, session: aiohttp.ClientSession, gateway_url: str, key: str) -> None:
        self._session = session
        self._url = f"{gateway_url}/v1/completions"
        self._key = key

    async def first_token(self, sample: Sample, pool: Pool, mode: str) -> FirstToken:
        body = msgspec.json.encode(
            {"prompt": sample.prefix, "suffix": SUFFIX, "max_tokens": MAX_TOKENS, "stream": True}
        )
        return await _post(self._session, self._url, body, key=self._key)


class WebSocket:
    name = "websocket"

    def __init__(self, stream: CompletionStream) -> None:
        self._stream = stream
        self._num_requests = 0

    async def first_token(self, sample: Sample, pool: Pool, mode: str) -> FirstToken:
        self._num_requests += 1
        frame = {
            "id": str(self._num_requests),
            "mode": mode,
            "prefix": sample.prefix,
            "suffix": SUFFIX,
            "max_tokens": MAX_TOKENS,
        }
        began_s = time.perf_counter()
        text_ms: float | None = None
        async for answer in self._stream.complete(frame):
            if text_ms is None and answer["type"] == "delta":
                text_ms = _ms_since(began_s)
            if answer.get("finish_reason") == FinishReason.SHED:
                raise RuntimeError("The gateway shed a request: see its log for rejected replicas.")
        return FirstToken(text_ms, _ms_since(began_s))


@asynccontextmanager
async def routes(
    gateway_url: str, *, http_key: str, websocket_key: str
) -> AsyncIterator[list[Route]]:
    """Open a connection for each route, which stays open.

    The keys belong to two tenants, so that no route caches prompts for another one.
    """
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession())
        stream = await stack.enter_async_context(open_stream(gateway_url, websocket_key))
        yield [
            Direct(session, sends_text=False),
            Direct(session, sends_text=True),
            WebSocket(stream),
            Http(session, gateway_url, http_key),
        ]


async def _post(
    session: aiohttp.ClientSession, url: str, body: bytes, *, key: str | None
) -> FirstToken:
    headers = {"Content-Type": "application/json"}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    began_s = time.perf_counter()
    text_ms: float | None = None
    async with session.post(url, data=body, headers=headers) as response:
        response.raise_for_status()
        async for line in response.content:
            if text_ms is None and _has_text(line):
                text_ms = _ms_since(began_s)
    return FirstToken(text_ms, _ms_since(began_s))


def _has_text(line: bytes) -> bool:
    if not line.startswith(_DATA + b"{"):
        return False
    choices = msgspec.json.decode(line[len(_DATA) :])["choices"]
    return bool(choices and choices[0]["text"])


def _ms_since(began_s: float) -> float:
    return (time.perf_counter() - began_s) * 1000
