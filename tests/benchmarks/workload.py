"""The workload of a benchmark: its connections, and the payloads sent over them."""

import itertools
import random
from collections.abc import Awaitable, Sequence
from typing import Final, Protocol

import msgspec

from caret.contracts.policy import Tier
from caret.foundation.ids import CacheSalt
from inference.pools.engine import EngineRequest
from inference.pools.pool_config import Pool, Replica

# the gateway's own body, not a copy
from inference.pools.vllm.engine import _build_body as body_of_gateway
from tests.benchmarks.competitors import KEY
from tests.benchmarks.load import ConnectionGroup
from tests.benchmarks.loaded_gateway import frame_of
from tests.benchmarks.raw_clients import ClientConnection, HttpConnection, WebSocketConnection
from tests.benchmarks.synthetic_engine import MODEL, PROMPT_TOKENS
from tests.benchmarks.typing_developers import shuffled_places, typists

_MAX_TOKENS: Final = 64
_BEGUN_WORD: Final = "size"  # typed at the cursor
_encode = msgspec.json.Encoder().encode


class Texts(Protocol):
    def next(self, number: int) -> tuple[str, str]:
        """Return the texts before and after the cursor of the developer with this number."""


class Developers:
    """Developers in their own files, one character further with each request."""

    def __init__(self, num: int) -> None:
        self._typists = typists(num)

    def next(self, number: int) -> tuple[str, str]:
        return self._typists[number].type()


class NewFiles:
    """A new file for each request."""

    def __init__(self, num: int) -> None:
        """Find `num` places in advance; each takes 3 ms. There are some 9,300 places."""
        self._places = list(itertools.islice(shuffled_places(random.Random(11)), num))

    def next(self, _number: int) -> tuple[str, str]:
        """Return the next new file.

        Raises IndexError when all are used.
        """
        place = self._places.pop()
        return place.prefix + _BEGUN_WORD, place.suffix


def websocket_group(url: str, keys: Sequence[str], texts: Texts) -> ConnectionGroup:
    """Return WebSocket connections, one for each key."""
    ids = itertools.count()

    def open_connection(number: int) -> Awaitable[ClientConnection]:
        return WebSocketConnection.open(f"{url}/v1/stream", headers=_bearer(keys[number]))

    def payload(number: int) -> bytes:
        prefix, suffix = texts.next(number)
        path = f"src/module_{number}.py"
        return frame_of(str(next(ids)), path=path, prefix=prefix, suffix=suffix)

    return ConnectionGroup(len(keys), open_connection, payload)


def http_group(url: str, keys: Sequence[str], texts: Texts) -> ConnectionGroup:
    """Return HTTP connections, one for each key."""

    def open_connection(number: int) -> Awaitable[ClientConnection]:
        return HttpConnection.open(f"{url}/v1/completions", headers=_bearer(keys[number]))

    def payload(number: int) -> bytes:
        prefix, suffix = texts.next(number)
        return _encode(
            {
                "model": MODEL,
                "prompt": prefix,
                "suffix": suffix,
                "max_tokens": _MAX_TOKENS,
                "stream": True,
            }
        )

    return ConnectionGroup(len(keys), open_connection, payload)


def engine_group(url: str, *, num_connections: int) -> ConnectionGroup:
    """Return direct connections to an engine, with the body that the gateway sends: token IDs."""
    replica = Replica(name="synthetic", url=url)
    pool = Pool(
        name="fast",
        tier=Tier.FAST,
        model=MODEL,
        tokenizer="",
        max_context_tokens=8_192,
        replicas=(replica,),
    )
    generator = random.Random(5)
    request = EngineRequest(
        pool=pool,
        replica=replica,
        token_ids=[generator.randrange(16_000) for _ in range(PROMPT_TOKENS)],
        stop_token_ids=[0, 1, 2, 3],
        stop=("\n",),
        max_tokens=_MAX_TOKENS,
        salt=CacheSalt("0" * 64),
        priority=0,
    )
    body = _encode(body_of_gateway(request))
    return ConnectionGroup(
        num_connections, lambda _: HttpConnection.open(f"{url}/v1/completions"), lambda _: body
    )


def competitor_group(url: str, *, num_connections: int) -> ConnectionGroup:
    """Return connections to a competitor, with a prompt of text, which all competitors accept."""
    developers = Developers(num_connections)

    def open_connection(_number: int) -> Awaitable[ClientConnection]:
        return HttpConnection.open(f"{url}/v1/completions", headers=_bearer(KEY))

    def payload(number: int) -> bytes:
        prefix, suffix = developers.next(number)
        return _encode(
            {
                "model": MODEL,
                "prompt": f"<|fim_prefix|>{prefix}<|fim_suffix|>{suffix}<|fim_middle|>",
                "max_tokens": _MAX_TOKENS,
                "temperature": 0,
                "stream": True,
            }
        )

    return ConnectionGroup(num_connections, open_connection, payload)


def _bearer(key: str) -> str:
    return f"authorization: Bearer {key}\r\n"
