"""Files of one language whose completions one replica serves, and an editor that requests them."""

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, Protocol

from caret.client.websocket_client import CompletionStream
from tests.functional.gateway.gateway_stack import Frame, request_completion

_NUM_FILES: Final = 4  # of each language, requested concurrently
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"


class Gateway(Protocol):
    def stream(self) -> AbstractAsyncContextManager[CompletionStream]: ...

    def new_id(self) -> str: ...


@dataclass
class Language:
    """Files of a language, and an editor that requests completions in them."""

    gateway: Gateway
    name: str
    write: Callable[[random.Random], str]  # writes the text before the cursor
    random: random.Random
    paths: list[str]

    async def request_in(self, path: str, *, max_tokens: int = 64) -> str:
        """Request a completion and return its replica."""
        frame: Frame = {
            "mode": "fim",
            "path": path,
            "language": self.name,
            "trigger": "manual",
            "prefix": self.write(self.random),
            "suffix": "\n",
            "max_tokens": max_tokens,
        }
        async with self.gateway.stream() as stream:
            _, done = await request_completion(stream, frame | {"id": self.gateway.new_id()})
        return str(done["meta"]["replica"])

    async def request_for(self, seconds: float) -> set[str]:
        """Request completions for this time and return the replicas of the last round."""
        end_s = time.monotonic() + seconds
        while True:
            replicas = set(await asyncio.gather(*map(self.request_in, self.paths)))
            if time.monotonic() > end_s:
                return replicas


async def files_at(
    replica: str,
    gateway: Gateway,
    name: str,
    write: Callable[[random.Random], str],
    *,
    num_files: int = _NUM_FILES,
) -> Language:
    """Return a language with files whose completions are routed to this replica (host:port)."""
    language = Language(gateway, name, write, random.Random(20261121), [])
    # Enough tries, because about half of all files are routed to each of two replicas.
    for number in range(16 * _NUM_FILES):
        path = f"{name}/{number}"
        if await language.request_in(path, max_tokens=1) == replica:
            language.paths.append(path)
        if len(language.paths) == num_files:
            return language
    raise AssertionError(f"fewer than {num_files} files are routed to {replica}")


def assignments(chance: random.Random) -> str:
    """Return text that the model continues by repetition, so that n-gram drafts are right.

    N-gram speculation drafts tokens by copying earlier text of the prompt.
    """
    names = [_word(chance) for _ in range(8)]
    lines = "".join(f"        self.{name} = {name}\n" for name in names)
    head = f"class {_word(chance).title()}:\n    def __init__(self, {', '.join(names)}):\n{lines}\n"
    method = f"    def reset(self, {', '.join(names)}):\n        self.{names[0]} = {names[0]}\n"
    return f"{head}{method}        self."


def numbers(chance: random.Random) -> str:
    """Return random zeros and ones, so that two of three n-gram drafts are wrong.

    Texts with more symbols have fewer equal n-grams, and the model copies these correctly.
    """
    return "".join(chance.choice("01") for _ in range(200))


def _word(chance: random.Random) -> str:
    return "".join(chance.choice(_LETTERS) for _ in range(6))
