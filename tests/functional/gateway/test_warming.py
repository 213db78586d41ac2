"""Warm-up with the real engine: the part of a prompt that typing does not change is cached early.

It is cached when the user opens a file, before the first completion.
"""

from collections.abc import Awaitable
from typing import Final

import pytest

from caret.client.websocket_client import CompletionStream
from tests.benchmarks.synthetic_code import SUFFIX, CodeText
from tests.functional.gateway.gateway_stack import Frame, Site, request_completion, wait_until

pytestmark = pytest.mark.engine
_NUM_OTHER_FILES: Final = 3
# Short enough to fit into a prompt; a longer file appears as an outline of at most 300 tokens.
_OTHER_FILE_TOKENS: Final = 180
# At least this many tokens of a prompt do not change with typing: the other files have more.
_STABLE_TOKENS: Final = 400
# After the stable part: a part of a cache block (32 tokens), and the text around the cursor.
_MAX_UNCACHED_TOKENS: Final = 32 + 32
_MAX_TRIES: Final = 5
_WARMED: Final = 'caret_warmups_total{outcome="warmed"}'


class File:
    """A file in an editor, with others open beside it."""

    def __init__(self, site: Site, code: CodeText, *, has_repository: bool = False) -> None:
        """Create a file; with `has_repository`, in a new repository.

        A warm-up follows the first completion in a repository. Without a repository, no test can
        mistake the warm-up of the previous test for its own.
        """
        self._site = site
        self._name = site.new_id()
        samples = [
            code.sample(mode="fim", num_tokens=_OTHER_FILE_TOKENS, max_tokens=4).prefix
            for _ in range(_NUM_OTHER_FILES)
        ]
        self.context: Frame = {
            "path": f"{self._name}/main.py",
            "language": "python",
            "files": [
                {"path": f"{self._name}/{n}.py", "text": text} for n, text in enumerate(samples)
            ],
            "repository": {"name": self._name if has_repository else ""},
        }

    def opened(self) -> Frame:
        """Return the frame that an editor sends when the file is opened."""
        return {"type": "file_opened", "text": f"first = 1\n{SUFFIX}", **self.context}

    def completion(self, prefix: str = "first = ") -> Frame:
        """Return a completion request in the file, with this text before the cursor."""
        frame = {"mode": "fim", "prefix": prefix, "suffix": SUFFIX, "max_tokens": 4}
        return {**frame, **self.context, "id": self._site.new_id()}


async def test_opening_a_file_warms_its_first_completion(site: Site, code: CodeText) -> None:
    file, num_records = File(site, code), await site.num_records()

    async with site.stream() as stream:
        await _wait_for_warm_up(site, stream.send(file.opened()))
        _, done = await request_completion(stream, file.completion())

    assert _is_warm(done["meta"])
    (record,) = await site.records_after(num_records)
    assert record.request_id == done["meta"]["request_id"], "a warm-up was recorded"


async def test_a_file_that_was_not_opened_is_cold(site: Site, code: CodeText) -> None:
    async with site.stream() as stream:
        _, done = await request_completion(stream, File(site, code).completion())

    assert done["meta"]["prompt_tokens"] > _STABLE_TOKENS
    assert done["meta"]["cached_tokens"] == 0


async def test_a_warm_up_does_not_benefit_another_tenant(site: Site, code: CodeText) -> None:
    file = File(site, code)

    async with site.stream(site.acme_key) as acme, site.stream(site.globex_key) as globex:
        await _wait_for_warm_up(site, acme.send(file.opened()))
        _, done = await request_completion(globex, file.completion())

    assert done["meta"]["cached_tokens"] == 0


async def test_a_cancelled_first_completion_still_warms_the_repository(
    site: Site, code: CodeText
) -> None:
    async with site.stream() as stream:
        for _ in range(_MAX_TRIES):
            file = File(site, code, has_repository=True)
            before = await _num_warmed(site)
            finish_reason = await _request_and_cancel(stream, file.completion())
            await _wait_for_more_warmed(site, before)
            if finish_reason == "cancelled":
                break
        _, done = await request_completion(stream, file.completion("second = "))

    assert finish_reason == "cancelled"
    assert _is_warm(done["meta"])


async def _request_and_cancel(stream: CompletionStream, frame: Frame) -> str:
    """Request a completion, cancel it at once, and return its finish reason.

    On a busy machine, it may have ended before.
    """
    await stream.send({"type": "complete", **frame})
    await stream.send({"type": "cancel", "id": frame["id"]})
    while (answer := await stream.receive())["type"] == "delta":
        pass
    return str(answer["finish_reason"])


def _is_warm(meta: Frame) -> bool:
    num_uncached = meta["prompt_tokens"] - meta["cached_tokens"]
    return bool(meta["cached_tokens"] > _STABLE_TOKENS and num_uncached < _MAX_UNCACHED_TOKENS)


async def _wait_for_warm_up(site: Site, action: Awaitable[None]) -> None:
    """Perform the action and wait for the warm-up that follows."""
    before = await _num_warmed(site)
    await action
    await _wait_for_more_warmed(site, before)


async def _wait_for_more_warmed(site: Site, before: float) -> None:
    async def has_warmed() -> bool:
        return await _num_warmed(site) > before

    assert await wait_until(has_warmed), "no warm-up followed"


async def _num_warmed(site: Site) -> float:
    lines = (await site.metrics()).splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(_WARMED))
