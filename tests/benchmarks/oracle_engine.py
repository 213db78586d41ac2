"""An engine that knows the text that a typist will write, and predicts it with errors.

The first token comes after 60 ms, then 100 tokens a second. Seven of ten predicted words are right,
and three of ten completions are empty. The same place always gets the same completion.
"""

import asyncio
import json
import random
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from aiohttp import web
from tokenizers import Tokenizer

from tests.fakes.gateway import WEIGHTS
from tests.stack.ports import free_port

FIRST_TOKEN_S: Final = 0.06
TOKEN_S: Final = 0.01
RIGHT_SHARE: Final = 0.7
EMPTY_SHARE: Final = 0.3
_WRONG: Final = "foo"
_MAX_LINES: Final = 4
# A token is a line break with its indentation, a word with the space before it, or one character.
_TOKENS: Final = re.compile(r"\n *| ?\w+|\W")
_TAIL_CHARS: Final = (400, 80, 30)  # of the text before the cursor, to search for in this order


@dataclass(slots=True)
class OracleEngine:
    """Set `text` to the final text of the file that is edited."""

    text: str = ""
    url: str = ""
    right_share: float = RIGHT_SHARE  # of the predicted words
    empty_share: float = EMPTY_SHARE  # of the completions
    _tokenizer: Tokenizer = field(
        default_factory=lambda: Tokenizer.from_file(str(Path(WEIGHTS) / "tokenizer.json"))
    )

    def predict(self, prefix: str) -> list[str]:
        """Return the tokens of a completion; [] for an empty one."""
        at = self._find_cursor(prefix)
        if at is None:
            return [_WRONG]
        line_start = self.text.rfind("\n", 0, at) + 1
        # For 4 neighbouring cursors, all completions are empty or none, as with a real model.
        if _chance("empty", line_start, (at - line_start) // 4) < self.empty_share:
            return []
        return list(self._predict_words(at))

    def _predict_words(self, at: int) -> Iterator[str]:
        num_lines = 1
        for match in _TOKENS.finditer(self.text, at):
            token = match.group()
            num_lines += token.startswith("\n")
            if num_lines > _MAX_LINES:
                return
            is_word = bool(token.strip()) and token[-1].isalnum()
            if is_word and _chance("word", match.end()) > self.right_share:
                yield token[: len(token) - len(token.lstrip())] + _WRONG
                return
            yield token

    def _find_cursor(self, prefix: str) -> int | None:
        """Return the end of the prompt's prefix in the text; None: it is not there."""
        for num_chars in _TAIL_CHARS:
            tail = prefix[-num_chars:]
            at = self.text.find(tail) if tail.strip() else -1
            if at >= 0:
                return at + len(tail)
        return None

    async def complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        prompt = body["prompt"]
        if not isinstance(prompt, str):
            prompt = self._tokenizer.decode(prompt, skip_special_tokens=False)
        texts = self.predict(_prefix_of(prompt))[: body["max_tokens"]]
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        with suppress(ConnectionResetError):  # the gateway has stopped the completion
            await _stream(request, response, texts or [""])
        return response


async def _stream(request: web.Request, response: web.StreamResponse, texts: list[str]) -> None:
    await response.prepare(request)
    await asyncio.sleep(FIRST_TOKEN_S - TOKEN_S)
    for number, text in enumerate(texts, start=1):
        await asyncio.sleep(TOKEN_S)
        finish_reason = "stop" if number == len(texts) else None
        choice = {"index": 0, "text": text, "finish_reason": finish_reason}
        event = {"choices": [choice], "usage": {"completion_tokens": number}}
        await response.write(b"data: " + json.dumps(event).encode() + b"\n\n")
    await response.write(b"data: [DONE]\n\n")


async def _list_models(_request: web.Request) -> web.Response:
    return web.json_response({"object": "list", "data": [{"id": "demo", "object": "model"}]})


def _prefix_of(prompt: str) -> str:
    """Return the text before the cursor.

    In the order suffix-prefix-middle this text is the last one, otherwise it precedes the suffix.
    """
    last = prompt.rpartition("<|fim_middle|>")[2]
    return last or prompt.rpartition("<|fim_prefix|>")[2].partition("<|fim_suffix|>")[0]


def _chance(*place: object) -> float:
    """Return a number from 0 to 1, always the same for a place."""
    return random.Random(repr(place)).random()


@asynccontextmanager
async def running_oracle() -> AsyncIterator[OracleEngine]:
    engine, port = OracleEngine(), free_port()
    app = web.Application()
    app.router.add_post("/v1/completions", engine.complete)
    app.router.add_get("/{rest:.*}", _list_models)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    engine.url = f"http://127.0.0.1:{port}"
    try:
        yield engine
    finally:
        await runner.cleanup()
