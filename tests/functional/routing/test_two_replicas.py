"""Two real replicas of one pool, of which one uses speculative decoding.

The tests check which replica gets a request, what happens when a replica dies, and that a language
leaves the replica with speculation if its drafts are rarely accepted.
"""

import json
import os
import random
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass

import aiohttp
import pytest

from inference.pools.speculation.acceptance_rate import MIN_ACCEPTANCE
from inference.pools.vllm.monitoring import parse_metrics
from inference.routing.consistent_hashing import MIN_GAIN_TOKENS
from tests.benchmarks.replicas import OwnReplica
from tests.benchmarks.synthetic_code import SUFFIX, CodeText
from tests.functional.gateway.gateway_stack import (
    Frame,
    Site,
    receive,
    request_completion,
    wait_until,
)
from tests.functional.routing.languages import assignments, files_at, numbers

pytestmark = [pytest.mark.engine, pytest.mark.deep]
_NUM_FILES = 8
_PREFIX_TOKENS = MIN_GAIN_TOKENS + 150
# The gateway needs twelve measurements, each over at least a second and 50 tokens. On a busy core
# this takes much longer than twelve seconds.
_LEARNING_S = 900.0
_TURN_S = 1.0  # duration of requests in one language, before the test changes to the other
_TIMEOUT_S = 60.0
_NUM_COMPLETIONS, _COMPLETION_TOKENS = 12, 16
_MIN_GAIN = 1.2  # tokens per step with speculation, divided by tokens per step without it
# One completion in eight is long enough, so it is practically certain that one of 150 is.
_MAX_TRIES = 150


@dataclass(frozen=True, slots=True)
class Answer:
    finish_reason: str
    replica: str
    cached_tokens: int


class Files:
    """Files of a repository, and an editor that requests completions in each."""

    def __init__(self, site: Site, code: CodeText, *, folder: str) -> None:
        self._site = site
        prefixes = [
            code.sample(mode="fim", num_tokens=_PREFIX_TOKENS, max_tokens=4).prefix
            for _ in range(_NUM_FILES)
        ]
        self.texts = {f"{folder}/{n}.py": prefix for n, prefix in enumerate(prefixes)}

    async def request_in_each(self, *, key: str | None = None) -> dict[str, Answer]:
        """Request a completion in each file, one after the other."""
        async with self._site.stream(key) as stream:
            return {
                path: _answer((await request_completion(stream, self._frame(path)))[1])
                for path in self.texts
            }

    def _frame(self, path: str) -> Frame:
        frame = {"mode": "fim", "prefix": self.texts[path], "suffix": SUFFIX, "max_tokens": 4}
        return {**frame, "path": path, "id": self._site.new_id()}


def _answer(done: Frame) -> Answer:
    meta = done["meta"]
    return Answer(done["finish_reason"], meta["replica"], meta["cached_tokens"])


async def test_a_file_stays_with_its_replica_and_both_replicas_are_used(
    site: Site, code: CodeText, replicas: list[OwnReplica]
) -> None:
    files = Files(site, code, folder="stays")

    first, second = await files.request_in_each(), await files.request_in_each()

    assert {answer.replica for answer in first.values()} == {replica.name for replica in replicas}
    assert [answer.replica for answer in first.values()] == [
        answer.replica for answer in second.values()
    ]
    assert all(answer.cached_tokens == 0 for answer in first.values())
    assert all(answer.cached_tokens > MIN_GAIN_TOKENS for answer in second.values())


async def test_another_tenant_gets_no_cache_hits_at_either_replica(
    site: Site, code: CodeText
) -> None:
    files = Files(site, code, folder="ours")
    our_answers = await files.request_in_each(key=site.acme_key)

    their_answers = await files.request_in_each(key=site.globex_key)

    assert len({answer.replica for answer in our_answers.values()}) == 2
    assert all(answer.cached_tokens == 0 for answer in their_answers.values())


async def test_a_dead_replicas_files_move_and_return_after_its_restart(
    site: Site, code: CodeText, replicas: list[OwnReplica]
) -> None:
    """One test covers the whole sequence, because an engine takes most of a minute to start."""
    frame, uninterrupted_meta = await _find_long_completion(site, code)
    (dead,) = [replica for replica in replicas if replica.name == uninterrupted_meta["replica"]]
    (alive,) = [replica for replica in replicas if replica is not dead]
    files = Files(site, code, folder="moves")
    before = await files.request_in_each()
    paths_of_dead = {path for path, answer in before.items() if answer.replica == dead.name}
    assert 0 < len(paths_of_dead) < _NUM_FILES

    async with site.open_websocket() as socket:
        await socket.send(json.dumps({"type": "complete", **frame, "id": site.new_id()}))
        text = begun = (await receive(socket))["text"]
        os.kill(dead.service.child.pid, signal.SIGKILL)
        while (end := await receive(socket))["type"] == "delta":
            text += end["text"]
    dead.service.child.kill()  # also kills the processes that the engine started, and waits
    moved = await files.request_in_each()
    requested_again = await files.request_in_each()
    dead.restart()

    async def are_served_by_restarted_replica() -> bool:
        files_with_new_texts = Files(site, code, folder="moves")
        answers = await files_with_new_texts.request_in_each()
        paths = {path for path, answer in answers.items() if answer.replica == dead.name}
        return paths == paths_of_dead

    has_returned = await wait_until(are_served_by_restarted_replica, timeout_s=_TIMEOUT_S)
    after_restart = await files.request_in_each()

    # The other replica gets the first part of the text in its prompt, where it may be tokenized
    # differently. So its completion may end elsewhere than an uninterrupted one.
    assert text.startswith(begun)
    assert len(text) > len(begun)
    assert end["finish_reason"] in ("stop", "length")
    assert end["meta"]["filter_reason"] != "engine_disconnected"
    assert end["meta"]["replica"] == alive.name
    assert end["meta"]["prompt_tokens"] == uninterrupted_meta["prompt_tokens"]
    assert 0 < end["meta"]["generated_tokens"] <= frame["max_tokens"]
    assert {answer.replica for answer in moved.values()} == {alive.name}
    assert {answer.finish_reason for answer in moved.values()} <= {"stop", "length", "filtered"}
    assert all(requested_again[path].cached_tokens > MIN_GAIN_TOKENS for path in paths_of_dead)
    # New texts of these files go to the restarted replica. Old texts stay where they are cached.
    assert has_returned, "the files did not return to their replica"
    assert all(after_restart[path].replica == alive.name for path in paths_of_dead)
    assert all(answer.cached_tokens > MIN_GAIN_TOKENS for answer in after_restart.values())


async def _find_long_completion(site: Site, code: CodeText) -> tuple[Frame, Frame]:
    """Return a request that takes long enough to be interrupted, and its completion's metadata."""
    async with site.stream() as stream:
        for number in range(_MAX_TRIES):
            prefix = code.sample(mode="fim", num_tokens=100, max_tokens=64).prefix
            frame = {"mode": "fim", "prefix": prefix, "suffix": SUFFIX, "max_tokens": 96}
            frame["path"] = f"long/{number}.py"
            text, done = await request_completion(stream, {**frame, "id": site.new_id()})
            meta = done["meta"]
            if text and meta["generated_tokens"] > 40 and _begins_early(meta):
                return frame, meta
    raise AssertionError("the model never writes a long completion")


def _begins_early(meta: Frame) -> bool:
    """Return True if the first text was sent in the first half of the time.

    Then there is time left for killing the replica.
    """
    return bool(meta["first_token_ms"] < meta["total_ms"] / 2)


async def test_a_language_with_low_acceptance_moves_to_the_replica_without_speculation(
    site: Site, replicas: list[OwnReplica]
) -> None:
    plain, speculating = replicas
    python = await files_at(speculating.name, site, "python", assignments)
    csv = await files_at(speculating.name, site, "csv", numbers)

    async def csv_has_moved() -> bool:
        # One language after the other: the engine's counters do not tell languages apart.
        await python.request_for(_TURN_S)
        return await csv.request_for(_TURN_S) == {plain.name}

    async def python_stays() -> bool:
        # This is not always true: if its replica is full, a file goes to the other replica.
        return await python.request_for(0) == {speculating.name}

    assert await wait_until(csv_has_moved, timeout_s=_LEARNING_S), (
        "no speculation statistics were learnt"
    )
    assert await wait_until(python_stays, timeout_s=_TIMEOUT_S), (
        "a language with good acceptance left its replica"
    )
    page = await site.metrics()
    acceptance = _acceptance(page)
    assert acceptance["demo-fast", "python"] >= MIN_ACCEPTANCE > acceptance["demo-fast", "csv"]
    assert 'caret_speculation_fallback{language="csv",pool="demo-fast"} 1.0' in page
    assert 'caret_speculation_fallback{language="python",pool="demo-fast"} 0.0' in page
    # The second of the two tokens that speculation drafts.
    assert re.search(
        r'position_acceptance\{language="python",pool="demo-fast",position="2"\}', page
    )


async def test_speculation_saves_steps_where_drafts_are_accepted(
    replicas: list[OwnReplica],
) -> None:
    """Compare the tokens that an engine step generates. Times would depend on the system load."""
    gain_of_repetitive_text = await _measure_gain(replicas, assignments)
    gain_of_random_text = await _measure_gain(replicas, numbers)

    assert gain_of_repetitive_text > _MIN_GAIN
    assert gain_of_random_text < gain_of_repetitive_text


async def _measure_gain(replicas: list[OwnReplica], write: Callable[[random.Random], str]) -> float:
    """Return tokens per step with speculation, divided by tokens per step without it."""
    plain, speculating = replicas
    tokens_without_speculation = await _tokens_per_step(plain, write)
    return await _tokens_per_step(speculating, write) / tokens_without_speculation


async def _tokens_per_step(replica: OwnReplica, write: Callable[[random.Random], str]) -> float:
    """Return the tokens that a step of the engine generates, one completion at a time."""
    chance = random.Random(20261126)
    async with aiohttp.ClientSession(replica.url) as session:
        before = await _read_counters(session)
        for _ in range(_NUM_COMPLETIONS):
            body = {
                "model": "demo",
                "prompt": f"<|fim_prefix|><|fim_suffix|>\n<|fim_middle|>{write(chance)}",
                "max_tokens": _COMPLETION_TOKENS,
                "min_tokens": _COMPLETION_TOKENS,
                "temperature": 0,
            }
            async with session.post("/v1/completions", json=body) as response:
                assert response.status == 200, await response.text()
        after = await _read_counters(session)
    tokens, steps = (now - count_before for now, count_before in zip(after, before, strict=True))
    return tokens / steps


async def _read_counters(session: aiohttp.ClientSession) -> tuple[float, float]:
    """Return the generated tokens and the steps of an engine."""
    async with session.get("/metrics") as response:
        values = parse_metrics(await response.text())
    tokens, steps = "vllm:generation_tokens_total", "vllm:iteration_tokens_total_count"
    return sum(values[tokens]), sum(values[steps])


def _acceptance(page: str) -> dict[tuple[str, str], float]:
    """Return the acceptance rate by pool and language."""
    lines = re.findall(r"caret_speculation_acceptance\{(.*)\} (\S+)", page)
    samples = ((dict(re.findall(r'(\w+)="([^"]*)"', labels)), value) for labels, value in lines)
    return {(labels["pool"], labels["language"]): float(value) for labels, value in samples}
