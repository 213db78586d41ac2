"""A completion over the WebSocket, through the real gateway and the real engine."""

import pytest

from caret.contracts.usage import OutcomeRecord
from tests.benchmarks.synthetic_code import SUFFIX, CodeText
from tests.functional.gateway.gateway_stack import Frame, Site, request_completion, wait_until

pytestmark = pytest.mark.engine
# On a busy machine, a completion may end before the gateway or the client acts: try again.
_MAX_TRIES = 5


async def test_a_completion_streams_its_text_and_ends_with_its_metadata(
    site: Site, long_frame: Frame
) -> None:
    async with site.stream() as stream:
        for _ in range(_MAX_TRIES):
            frame = {**long_frame, "id": site.new_id(), "max_tokens": 32}
            *deltas, done = [answer async for answer in stream.complete(frame)]
            if len(deltas) > 1:
                break

    assert len(deltas) > 1
    assert all(delta["type"] == "delta" and delta["text"] for delta in deltas)
    assert done["finish_reason"] in ("stop", "length")
    meta = done["meta"]
    assert (
        0
        < meta["time_to_engine_ms"]
        <= meta["time_to_engine_ms"] + meta["engine_ms"]
        <= meta["first_token_ms"]
    )
    assert meta["first_token_ms"] < meta["total_ms"]
    assert 0 < meta["prompt_tokens"] < 1_000
    assert 0 <= meta["cached_tokens"] < meta["prompt_tokens"]
    assert 1 < meta["generated_tokens"] <= 32
    assert (meta["tier"], meta["pool"]) == ("fast", "demo-fast")
    assert site.engine_url.endswith(meta["replica"])


async def test_the_reported_prompt_segments_add_up_to_the_prompt(
    site: Site, code: CodeText
) -> None:
    files = [{"path": "lib.py", "text": "def lib():\n    return 1\n"}]
    frame = {**_frame(code), "path": "a.py", "files": files, "include_prompt_segments": True}
    async with site.stream() as stream:
        await request_completion(stream, {**frame, "id": "explained-1"})
        _, done = await request_completion(stream, {**frame, "id": "explained-2"})

    meta, prompt_segments = done["meta"], done["meta"]["prompt_segments"]
    segments = prompt_segments["segments"]
    kinds = [segment["kind"] for segment in segments]
    assert kinds == ["files", "path", "markers", "suffix", "markers", "prefix"]
    assert sum(segment["tokens"] for segment in segments) == meta["prompt_tokens"]
    assert sum(segment["cached_tokens"] for segment in segments) == meta["cached_tokens"] > 0
    assert (prompt_segments["files_sent"], prompt_segments["files_in_prompt"]) == (1, 1)
    assert prompt_segments["files_excluded"] == 0


async def test_the_usage_record_matches_the_clients_metadata(site: Site, long_frame: Frame) -> None:
    async with site.stream() as stream:
        frame = {**long_frame, "id": "1", "language": "Python", "max_tokens": 64}
        _, done = await request_completion(stream, frame)

    meta = done["meta"]
    record = await site.record_of(meta["request_id"])
    reported_counts = {
        name: meta[name] for name in ("prompt_tokens", "cached_tokens", "generated_tokens")
    }
    recorded = {name: getattr(record, name) for name in reported_counts}
    assert recorded == reported_counts
    assert (record.mode, record.language, record.protocol) == ("fim", "python", "stream")
    assert record.finish_reason == done["finish_reason"]


@pytest.mark.parametrize("mode", ["block", "docstring"])
async def test_block_and_docstring_modes_use_the_quality_tier(
    site: Site, code: CodeText, mode: str
) -> None:
    prefix = code.sample(mode=mode, num_tokens=80, max_tokens=4).prefix
    async with site.stream() as stream:
        _, done = await request_completion(
            stream, {"id": "1", "mode": mode, "prefix": prefix, "max_tokens": 4}
        )

    assert (done["meta"]["tier"], done["meta"]["pool"]) == ("quality", "demo-quality")


async def test_a_repeated_prompt_hits_the_cache(site: Site, code: CodeText) -> None:
    frame = _frame(code)

    async with site.stream() as stream:
        _, first = await request_completion(stream, {**frame, "id": "1"})
        _, second = await request_completion(stream, {**frame, "id": "2"})

    assert first["meta"]["cached_tokens"] == 0
    assert second["meta"]["cached_tokens"] > 100  # of the 200 tokens before the cursor


async def test_another_tenant_gets_no_cache_hits(site: Site, code: CodeText) -> None:
    frame = _frame(code)

    async with site.stream(site.acme_key) as acme, site.stream(site.globex_key) as globex:
        await request_completion(acme, {**frame, "id": "1"})
        _, done = await request_completion(globex, {**frame, "id": "1"})

    assert done["meta"]["cached_tokens"] == 0


async def test_completions_for_two_files_run_concurrently(site: Site, long_frame: Frame) -> None:
    # A pool whose first tokens are late admits only one automatic request at a time.
    frame = {"type": "complete", **long_frame, "trigger": "manual"}
    for _ in range(_MAX_TRIES):
        answers: list[Frame] = []
        async with site.stream() as stream:
            for name in ("a", "b"):
                await stream.send({**frame, "id": name, "path": f"{name}.py"})
            while {answer["id"] for answer in answers} != {"a", "b"}:
                answers.append(await stream.receive())
        has_any_ended = any(answer["type"] != "delta" for answer in answers)
        if not has_any_ended:
            break

    assert not has_any_ended, answers


async def test_the_outcome_of_a_suggestion_is_recorded(site: Site, code: CodeText) -> None:
    async with site.stream() as stream:
        _, done = await request_completion(stream, {**_frame(code), "id": "1"})
        await stream.send(
            {"type": "outcome", "id": "1", "event": "accepted", "chars": 1, "after_ms": 900}
        )
        request_id = done["meta"]["request_id"]

        async def is_recorded() -> bool:
            return any(
                isinstance(record, OutcomeRecord)
                and (record.request_id, record.event, record.chars) == (request_id, "accepted", 1)
                for record in site.records()
            )

        assert await wait_until(is_recorded)


def _frame(code: CodeText) -> Frame:
    prefix = code.sample(mode="fim", num_tokens=200, max_tokens=4).prefix
    return {"mode": "fim", "prefix": prefix, "suffix": SUFFIX, "max_tokens": 4}
