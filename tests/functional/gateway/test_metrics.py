"""A gateway's values at /metrics agree with its clients' observations."""

import asyncio
import json
import secrets
import sys
from typing import Any, Final

import pytest

from caret.capacity.measurements import Totals, sum_metrics
from caret.client.websocket_client import CompletionStream
from caret.local.paths import REPOSITORY
from tenants.fleet.pools.scraping.metric_samples import parse_metrics
from tests.benchmarks.synthetic_code import SUFFIX, CodeText
from tests.functional.gateway.gateway_stack import Frame, Site, request_completion, wait_until

pytestmark = pytest.mark.engine
_NUM_REQUESTS: Final = 4
_MAX_TRIES: Final = 5


async def read_totals(site: Site) -> Totals:
    return sum_metrics([await site.metrics()])


def frame_of(site: Site, code: CodeText) -> Frame:
    prefix = code.sample(mode="fim", num_tokens=100, max_tokens=8).prefix
    return {
        "id": site.new_id(),
        "mode": "fim",
        "prefix": prefix,
        "suffix": SUFFIX,
        "max_tokens": 8,
    }


async def test_counts_and_tokens_match_the_completions(site: Site, code: CodeText) -> None:
    await site.wait_for_deliveries()  # so that completions of earlier tests are counted
    before = await read_totals(site)

    metas = await _complete_some(site, code)

    await site.wait_for_deliveries()
    after = await read_totals(site)
    delta = {name: after[name] - before[name] for name in after}
    assert delta["caret_completions_total"] == _NUM_REQUESTS
    num_with_text = sum(meta["first_token_ms"] is not None for meta in metas)
    assert delta["caret_first_token_seconds_count"] == num_with_text
    first_s = sum(meta["first_token_ms"] or 0 for meta in metas) / 1000
    assert delta["caret_first_token_seconds_sum"] == pytest.approx(first_s, rel=0.001)
    for name in ("prompt_tokens", "generated_tokens"):
        assert delta[f"caret_{name}_total"] == sum(meta[name] for meta in metas)
    with_cache = [meta for meta in metas if meta["cached_tokens"] is not None]
    assert delta["caret_cached_tokens_total"] == sum(meta["cached_tokens"] for meta in with_cache)
    assert delta["caret_prompt_tokens_with_cache_info_total"] == sum(
        meta["prompt_tokens"] for meta in with_cache
    )
    # Nine stages, of which `filter` and `stream` are not reached without text.
    assert delta["caret_stage_seconds_count"] == 7 * _NUM_REQUESTS + 2 * num_with_text


async def test_a_cancel_and_an_outcome_are_counted(site: Site, long_frame: Frame) -> None:
    before = parse_metrics(await site.metrics())

    async with site.stream() as stream:
        identifier = await _cancel_completion(site, stream, long_frame)
        outcome = {"type": "outcome", "id": identifier, "event": "accepted"}
        await stream.send({**outcome, "chars": 4, "after_ms": 10})

        async def are_counted() -> bool:
            after = parse_metrics(await site.metrics())
            return all(
                after.sum(name, **labels) > before.sum(name, **labels)
                for name, labels in (
                    ("caret_completions_total", {"finish_reason": "cancelled"}),
                    ("caret_outcomes_total", {"event": "accepted"}),
                )
            )

        assert await wait_until(are_counted)
        assert _value(await site.metrics(), "caret_connected_clients ") >= 1


async def _cancel_completion(site: Site, stream: CompletionStream, frame: Frame) -> str:
    """Cancel a completion and return its ID.

    On a busy machine a completion may end before the cancel frame arrives; then try another one.
    """
    for _ in range(_MAX_TRIES):
        identifier = site.new_id()
        await stream.send({"type": "complete", **frame, "id": identifier})
        await stream.receive()
        await stream.send({"type": "cancel", "id": identifier})
        while (answer := await stream.receive())["type"] != "done":
            pass
        if answer["finish_reason"] == "cancelled":
            return identifier
    raise AssertionError("every completion ended before the cancel frame arrived")


async def test_the_metrics_show_the_state_of_gateway_and_engine(site: Site) -> None:
    async def are_as_expected() -> bool:
        page = await site.metrics()
        return (
            _value(page, "caret_completions_in_flight ") == 0
            and _value(page, "caret_pool_requests_in_flight{") == 0
            and _value(page, "caret_pool_concurrency_limit{") >= 1
            and 0 <= _value(page, "caret_snapshot_age_seconds ") < 60
            and _value(page, "caret_engine_up{") == 1
            and _value(page, "caret_engine_requests_running{") >= 0
            and _value(page, 'caret_replica_circuit_state{circuit="closed"') == 1
            and _value(page, "caret_event_loop_lag_seconds_count ") > 0
        )

    # A completion of an earlier test may still run.
    assert await wait_until(are_as_expected), await site.metrics()


async def test_each_metric_is_exported_once(site: Site) -> None:
    kinds = [line for line in (await site.metrics()).splitlines() if line.startswith("# TYPE")]

    assert len(kinds) > 20
    assert sorted(set(kinds)) == sorted(kinds)


async def test_metrics_contain_no_customer_text(site: Site) -> None:
    planted_texts = [f"Planted{secrets.token_hex(8)}" for _ in range(5)]
    async with site.stream() as stream:
        await request_completion(
            stream,
            {
                "id": site.new_id(),
                "mode": "fim",
                "path": f"{planted_texts[0]}.py",
                "prefix": f"x = {planted_texts[1]}",
                "suffix": planted_texts[2],
                "repository": {"name": planted_texts[3]},
                "language": "python",
                "max_tokens": 4,
            },
        )
        await stream.send({"type": "complete", "id": site.new_id(), "mode": planted_texts[4]})
        await stream.receive()

    page = await site.metrics()

    assert "caret_completions_total" in page
    assert [text for text in planted_texts if text in page] == []


async def test_metrics_are_served_only_on_their_own_port(site: Site) -> None:
    async with site.http() as session, session.get("/metrics") as response:
        assert response.status == 404


@pytest.mark.deep  # long
async def test_the_capacity_command_measures_a_running_gateway(site: Site, code: CodeText) -> None:
    command = (sys.executable, "manage.py", "capacity", "--json", "--during", "3")
    process = await asyncio.create_subprocess_exec(
        # The default of 100 warm tokens could be more than the prompts have, which is invalid.
        *(*command, "--url", site.metrics_url, "--warm-tokens", "1"),
        cwd=REPOSITORY,
        stdout=asyncio.subprocess.PIPE,
    )
    while process.returncode is None:
        metas = await _complete_some(site, code)
        await asyncio.sleep(0.2)
    assert process.stdout is not None

    plan: dict[str, Any] = json.loads(await process.stdout.read())

    figures = plan["figures"]
    assert process.returncode == 0
    assert figures["requests_per_s"] > 0
    prompt_tokens = [meta["prompt_tokens"] for meta in metas]
    # The figure is the mean of all prompts of this gateway, those of other tests included.
    assert 0.3 * min(prompt_tokens) < figures["context_tokens"] < 3 * max(prompt_tokens)


async def _complete_some(site: Site, code: CodeText) -> list[dict[str, Any]]:
    """Return the `meta` of each completion."""
    metas = []
    async with site.stream() as stream:
        for _ in range(_NUM_REQUESTS):
            _, done = await request_completion(stream, frame_of(site, code))
            metas.append(done["meta"])
    return metas


def _value(page: str, start: str) -> float:
    """Return the value of the first line that begins with `start`.

    `start` ends with the character after the metric's name, so that no longer name matches.
    """
    lines = (line for line in page.splitlines() if line.startswith(start))
    return float(next(lines).rpartition(" ")[2])
