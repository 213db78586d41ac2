"""Who asks what of whom: the lines of a benchmark, and the payloads that go over them."""

import itertools
import random
from collections.abc import Awaitable, Sequence
from typing import Final, Protocol

import msgspec

from caret.contracts.policy import Tier
from caret.foundation.ids import CacheSalt
from inference.pools.engine import EngineRequest
from inference.pools.pool_config import Pool, Replica
from inference.pools.vllm.engine import _body as body_of_gateway  # the very body, not one like it
from tests.benchmarks.competitors import KEY
from tests.benchmarks.load import Way
from tests.benchmarks.loaded_gateway import frame_of
from tests.benchmarks.raw_clients import HttpLine, Line, WebSocketLine
from tests.benchmarks.synthetic_engine import MODEL, PROMPT_TOKENS
from tests.benchmarks.typing_developers import shuffled_places, typists

_MAX_TOKENS: Final = 64
_encode = msgspec.json.Encoder().encode


class Texts(Protocol):
    def next(self, number: int) -> tuple[str, str]:
        """What stands before and after the cursor of the developer of this number."""


class Developers:
    """Each in a file of his own, one character further with each request."""

    def __init__(self, num: int) -> None:
        self._typists = typists(num)

    def next(self, number: int) -> tuple[str, str]:
        return self._typists[number].type()


class NewFiles:
    """A file that nobody has sent before, each time."""

    def __init__(self, num: int) -> None:
        """`num`: times, 9,000 at most. Found beforehand, which takes 3 ms each."""
        self._places = list(itertools.islice(shuffled_places(random.Random(11)), num))

    def next(self, _number: int) -> tuple[str, str]:
        """Raises IndexError when all are used up."""
        place = self._places.pop()
        return f"{place.prefix}size", place.suffix


def websocket_way(url: str, keys: Sequence[str], texts: Texts) -> Way:
    """A line for each key."""
    ids = itertools.count()

    def opening(number: int) -> Awaitable[Line]:
        return WebSocketLine.open(f"{url}/v1/stream", headers=_bearer(keys[number]))

    def payload(number: int) -> bytes:
        prefix, suffix = texts.next(number)
        path = f"src/module_{number}.py"
        return frame_of(str(next(ids)), path=path, prefix=prefix, suffix=suffix)

    return Way(len(keys), opening, payload)


def http_way(url: str, keys: Sequence[str], texts: Texts) -> Way:
    """A line for each key."""

    def opening(number: int) -> Awaitable[Line]:
        return HttpLine.open(f"{url}/v1/completions", headers=_bearer(keys[number]))

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

    return Way(len(keys), opening, payload)


def engine_way(url: str, *, num_lines: int) -> Way:
    """With the body that the gateway sends: a prompt of token ids."""
    replica = Replica(name="synthetic", url=url)
    pool = Pool("fast", Tier.FAST, MODEL, "", 8_192, (replica,))
    order = random.Random(5)
    request = EngineRequest(
        pool=pool,
        replica=replica,
        token_ids=[order.randrange(16_000) for _ in range(PROMPT_TOKENS)],
        stop_token_ids=[0, 1, 2, 3],
        stop=("\n",),
        max_tokens=_MAX_TOKENS,
        salt=CacheSalt("0" * 64),
        priority=0,
    )
    body = _encode(body_of_gateway(request))
    return Way(num_lines, lambda _: HttpLine.open(f"{url}/v1/completions"), lambda _: body)


def rival_way(url: str, *, num_lines: int) -> Way:
    """With a prompt of text, in the shape that all of them take."""
    developers = Developers(num_lines)

    def opening(_number: int) -> Awaitable[Line]:
        return HttpLine.open(f"{url}/v1/completions", headers=_bearer(KEY))

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

    return Way(num_lines, opening, payload)


def _bearer(key: str) -> str:
    return f"authorization: Bearer {key}\r\n"
