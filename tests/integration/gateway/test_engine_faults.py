"""If an engine fails, the client of each protocol gets a clean end within DEADLINE_S.

A clean end is the text from before the fault or, if there was no text, an error. No error message
repeats what the engine sent. The pool has one replica, so there is no failover.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Final

import pytest

from inference.pools.health.replica_states import MAX_FAILURES
from tenants.fleet.pools.scraping.metric_samples import parse_metrics
from tests.benchmarks.installation import build_gateway_service
from tests.functional.gateway.gateway_stack import Site
from tests.integration.gateway.engine_control import set_fault
from tests.integration.gateway.faults import CUT_OFF, FAULTS, SECRET, STALLS
from tests.integration.gateway.sample_requests import SAMPLE_REQUESTS, SampleRequest
from tests.stack.ports import free_port

# Seconds without data after which one gateway ends an engine's stream, because tests wait for it.
# The other gateway does so much later: there, a busy machine must not cause such an end.
STALL_S: Final = 2
DEADLINE_S: Final = STALL_S + 20  # 20 s for a busy machine
# The 503 is tested last: after it, the gateway considers the engine full, and sheds requests.
BUSY = "a 503"
REJECTED_PROMPT = "a 400"  # the engine rejects the client's request
ORDER = [*(name for name in (*FAULTS, *STALLS) if name != BUSY), BUSY]


@pytest.fixture(scope="module")
def stalling_site(quick_site: Site) -> Iterator[Site]:
    """A second gateway, which ends an engine's stream after STALL_S without data."""
    limit = {"CARET_MAX_ENGINE_STALL_S": str(STALL_S)}
    home = replace(quick_site.home, environment=quick_site.home.environment | limit)
    port = free_port()
    replicas = [quick_site.engine_url]
    service = build_gateway_service(home, port=port, replicas=replicas, has_token_healing=True)
    site = replace(quick_site, url=f"http://127.0.0.1:{port}", gateway=service)
    site.launch_gateway()
    try:
        yield site
    finally:
        service.child.stop()


@pytest.fixture(params=ORDER)
async def faulty_site(
    quick_site: Site, stalling_site: Site, request: pytest.FixtureRequest
) -> AsyncIterator[Site]:
    await set_fault(quick_site.engine_url, request.param)
    yield stalling_site if request.param in STALLS else quick_site
    await set_fault(quick_site.engine_url, "none")


async def test_clients_of_every_protocol_get_a_clean_end(
    faulty_site: Site, request: pytest.FixtureRequest
) -> None:
    fault = request.node.callspec.params["faulty_site"]
    expect_end = _expect_text if fault in CUT_OFF else _expect_error
    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
        for name, sample in SAMPLE_REQUESTS.items():
            group.create_task(expect_end(faulty_site, name, sample))


async def _expect_text(site: Site, name: str, sample: SampleRequest) -> None:
    """Expect the text from before the fault, and no error."""
    async with (
        site.http() as session,
        session.post(sample.path, json=sample.body_with(64)) as response,
    ):
        text = await response.text()

    assert response.status == 200, f"{name}: {text}"
    assert "word" in text, f"{name}: {text}"
    assert "error" not in text, f"{name}: {text}"
    assert SECRET not in text, name


async def _expect_error(site: Site, name: str, sample: SampleRequest) -> None:
    """Expect an error that does not repeat the engine's response."""
    async with (
        site.http() as session,
        session.post(sample.path, json=sample.body_with(64)) as response,
    ):
        # Raises an error if the body is truncated.
        text = await response.text()

    assert SECRET not in text, name
    if response.status == 200:
        # The response had begun, so its last event is the error.
        assert sample.is_streamed, f"{name}: {text}"
        assert "error" in text.strip().splitlines()[-1], f"{name}: {text}"
    else:
        assert response.status in (400, 502, 503, 504), f"{name}: {text}"
        assert "error" in text, name


async def test_a_rejected_prompt_does_not_count_as_an_engine_failure(
    quick_site: Site,
) -> None:
    failures_before = await _read_failure_counts(quick_site)
    rejections_before = await _count_rejected_prompts(quick_site)
    await set_fault(quick_site.engine_url, REJECTED_PROMPT)
    for _ in range(MAX_FAILURES + 1):
        await _expect_status(quick_site, 400)
    await set_fault(quick_site.engine_url, "none")

    await _expect_status(quick_site, 200)
    assert await _count_rejected_prompts(quick_site) > rejections_before
    assert await _read_failure_counts(quick_site) == failures_before
    lines = (await quick_site.metrics()).splitlines()
    circuits = [line for line in lines if line.startswith("caret_replica_circuit_state")]
    assert circuits
    # A metric has the value 1 for the current state of a replica's circuit breaker.
    assert not any('"open"' in line and line.endswith(" 1.0") for line in circuits)


async def _count_rejected_prompts(site: Site) -> float:
    samples = parse_metrics(await site.metrics())
    return samples.sum("caret_completions_total", error="prompt_refused")


async def _read_failure_counts(site: Site) -> list[str]:
    """Return the lines of all metrics about failures of the engine."""
    lines = (await site.metrics()).splitlines()
    return [line for line in lines if 'error="engine_' in line]


async def test_requests_succeed_again_after_a_fault(quick_site: Site) -> None:
    await set_fault(quick_site.engine_url, "garbage")
    await _expect_status(quick_site, 502)
    await set_fault(quick_site.engine_url, "none")

    await _expect_status(quick_site, 200)


async def _expect_status(site: Site, status: int) -> None:
    """Send a request in each protocol, not streamed, and expect this status."""
    for sample in SAMPLE_REQUESTS.values():
        if not sample.is_streamed:
            async with (
                site.http() as session,
                session.post(sample.path, json=sample.body_with(4)) as response,
            ):
                assert response.status == status, await response.text()
