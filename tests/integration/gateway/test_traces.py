"""A real gateway sends traces to an OTLP collector of the test. The engine is a fake."""

import asyncio
import secrets
from collections.abc import Iterator

import pytest

from inference.recording.stage_timings import STAGES
from tests.benchmarks.installation import create_home
from tests.functional.gateway.gateway_stack import Site, request_completion, start_site, wait_until
from tests.integration.gateway.collector import Collector, running_collector

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
SPANS = sorted(["completion", *STAGES])
MAX_COMPLETION_S = 10.0  # on a busy machine
MAX_STOP_S = 25.0  # on a busy machine


@pytest.fixture
def collector() -> Iterator[Collector]:
    with running_collector() as running:
        yield running


@pytest.fixture
def site(fake_engine_url: str, collector: Collector) -> Iterator[Site]:
    """A gateway that traces all completions."""
    settings = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_TRACES_SAMPLER": "parentbased_always_on",
        "OTEL_BSP_SCHEDULE_DELAY": "100",  # ms until spans are sent
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=test",
    }
    with create_home() as home:
        home.environment.update(settings)
        with start_site(home, fake_engine_url) as site:
            yield site


async def test_the_collector_gets_the_stages_of_a_completion_without_text(
    site: Site, collector: Collector
) -> None:
    planted_text = f"Planted{secrets.token_hex(8)}"
    async with site.stream() as stream:
        frame = {
            "mode": "fim",
            "prefix": f"{planted_text} = ",
            "suffix": planted_text,
            "path": f"{planted_text}.py",
        }
        _, done = await request_completion(stream, {**frame, "id": "1", "max_tokens": 4})

    assert await _wait_for_spans(collector)

    assert sorted(span.name for span in collector.spans) == SPANS
    trace_id = done["meta"]["request_id"].replace("-", "")
    assert {span.trace_id.hex() for span in collector.spans} == {trace_id}
    (completion_span,) = (span for span in collector.spans if span.name == "completion")
    duration_ns = completion_span.end_time_unix_nano - completion_span.start_time_unix_nano
    assert duration_ns > 1_000_000  # 1 ms
    sent_bytes = b"".join(collector.bodies)
    assert b"caret-gateway" in sent_bytes
    assert b"deployment.environment" in sent_bytes
    assert planted_text.encode() not in sent_bytes
    assert site.acme_key.encode() not in sent_bytes


async def test_a_trace_of_an_http_client_is_continued(site: Site, collector: Collector) -> None:
    headers = {"traceparent": f"00-{TRACE_ID}-b7ad6b7169203331-01"}
    async with site.http() as session:
        body = {"prompt": "x = ", "max_tokens": 4}
        async with session.post("/v1/completions", json=body, headers=headers) as response:
            assert response.status == 200

    assert await _wait_for_spans(collector)

    assert {span.trace_id.hex() for span in collector.spans} == {TRACE_ID}


async def test_a_trace_of_an_editor_is_continued(site: Site, collector: Collector) -> None:
    async with site.stream() as stream:
        frame = {"prefix": "x = ", "max_tokens": 4, "id": "1"}
        await request_completion(
            stream, {**frame, "traceparent": f"00-{TRACE_ID}-b7ad6b7169203331-01"}
        )

    assert await _wait_for_spans(collector)

    assert {span.trace_id.hex() for span in collector.spans} == {TRACE_ID}


async def test_pending_spans_are_sent_at_shutdown(
    fake_engine_url: str, collector: Collector
) -> None:
    with create_home() as home:
        home.environment.update(
            {
                "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
                "OTEL_TRACES_SAMPLER": "always_on",
                "OTEL_BSP_SCHEDULE_DELAY": "600000",  # ms: longer than the test
            }
        )
        with start_site(home, fake_engine_url) as site:
            await _request_completion(site)
            assert collector.bodies == []
            assert await _ends_by_itself(site)

    assert sorted(span.name for span in collector.spans) == SPANS


async def test_an_unreachable_collector_delays_neither_completions_nor_shutdown(
    fake_engine_url: str,
) -> None:
    with create_home() as home:
        home.environment.update(
            {
                "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1",
                "OTEL_TRACES_SAMPLER": "always_on",
                "OTEL_BSP_SCHEDULE_DELAY": "10",  # ms
            }
        )
        with start_site(home, fake_engine_url) as site:
            for _ in range(20):
                async with asyncio.timeout(MAX_COMPLETION_S):
                    await _request_completion(site)
            # The gateway limits the time of the exporter at shutdown. Without the limit, the
            # exporter would wait half a minute.
            assert await _ends_by_itself(site)
        log = (home.paths.logs / "gateway.log").read_text()

    assert "internal_error" not in log


async def _ends_by_itself(site: Site) -> bool:
    """Tell the gateway to stop, and return True if it ends in MAX_STOP_S."""
    site.gateway.child.request_stop()

    async def has_ended() -> bool:
        return not site.gateway.child.is_alive

    return await wait_until(has_ended, timeout_s=MAX_STOP_S)


async def _request_completion(site: Site) -> None:
    async with site.stream() as stream:
        frame = {"mode": "fim", "prefix": "x = ", "suffix": "", "max_tokens": 4}
        _, done = await request_completion(stream, {**frame, "id": site.new_id()})
        assert done["type"] == "done"


async def _wait_for_spans(collector: Collector) -> bool:
    """Wait until all spans of a completion have arrived."""

    async def have_arrived() -> bool:
        return len(collector.spans) >= len(SPANS)

    return await wait_until(have_arrived)
