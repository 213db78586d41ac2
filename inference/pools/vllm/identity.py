"""The identity of a vLLM server: its models, its tokenizer and the block size of its cache."""

import re
from collections.abc import Awaitable
from typing import Any, Final, TypeVar

import aiohttp
import msgspec

from inference.pools.discovery.pool_members import NameNotFound, Unreachable
from inference.pools.discovery.replica_identity import PROBE_TEXT, ReplicaIdentity
from inference.pools.pool_config import Replica
from inference.pools.vllm.response_body import read_body

_MAX_BYTES: Final = 4 * 1024 * 1024  # of a response's body
# The labels of this gauge are the settings of the cache. Its value is always 1.
_BLOCK_SIZE: Final = re.compile(r'^vllm:cache_config_info\{[^}]*\bblock_size="(\d+)"', re.MULTILINE)
T = TypeVar("T")


class _ServedModel(msgspec.Struct):
    id: str  # the name under which the server serves the model
    root: str | None = None  # folder or address of the weights
    max_model_len: int | None = None  # tokens


class _ModelsResponse(msgspec.Struct):
    data: tuple[_ServedModel, ...]


class _TokenizeResponse(msgspec.Struct):
    tokens: tuple[int, ...]


class VllmIdentity:
    """An IdentityProbe for vLLM servers."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def fetch_identity(self, replica: Replica, model: str) -> ReplicaIdentity:
        """Fetch the identity. A field is None if the server does not state it.

        `model` is the name of the pool's model. The caller sets the timeout. Raises Unreachable
        (NameNotFound, which is a subclass, if the host name has no address).
        """
        models = _decode_or_none(
            await self._fetch("GET", f"{replica.url}/v1/models"), _ModelsResponse
        )
        body = {"model": model, "prompt": PROBE_TEXT, "add_special_tokens": False}
        tokenized = _decode_or_none(
            await self._fetch("POST", f"{replica.url}/tokenize", json=body), _TokenizeResponse
        )
        page = (await self._fetch("GET", f"{replica.url}/metrics")).decode("utf-8", "replace")
        block = _BLOCK_SIZE.search(page)
        return ReplicaIdentity(
            roots=None if models is None else {model.id: model.root for model in models.data},
            max_context_tokens=None
            if models is None
            else {model.id: model.max_model_len for model in models.data},
            token_ids=None if tokenized is None else tokenized.tokens,
            block_tokens=None if block is None else int(block[1]),
        )

    async def _fetch(self, method: str, url: str, **options: Any) -> bytes:
        """Return the body; empty unless the status is 200. Raises Unreachable."""
        return await _translate_errors(self._send_request(method, url, **options))

    async def _send_request(self, method: str, url: str, **options: Any) -> bytes:
        # Redirects are not followed: they would lead to the identity of another server.
        request = self._session.request(method, url, allow_redirects=False, **options)
        async with request as response:
            return (
                await read_body(response, max_bytes=_MAX_BYTES) if response.status == 200 else b""
            )


async def _translate_errors(exchange: Awaitable[T]) -> T:
    """Await the exchange. Raises Unreachable or its subclass NameNotFound for aiohttp's errors."""
    try:
        return await exchange
    except aiohttp.ClientConnectorDNSError as error:
        raise NameNotFound from error
    except (aiohttp.ClientError, OSError) as error:
        raise Unreachable from error


def _decode_or_none(body: bytes, response_type: type[T]) -> T | None:
    """Decode the body; None if it does not have this type."""
    try:
        return msgspec.json.decode(body, type=response_type)
    except (msgspec.MsgspecError, UnicodeError):
        return None
