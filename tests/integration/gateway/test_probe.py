"""The probe, a synthetic user that types, sends requests to a real gateway and reports the results.

One test is about the gateway's own metric of cancellations.
"""

import json

import pytest
from prometheus_client import generate_latest
from websockets.asyncio.server import ServerConnection, serve

from caret.client.synthetic_probe import ProbeMetrics, ProbeResult, run_probe
from tenants.fleet.pools.scraping.metric_samples import parse_metrics
from tests.functional.gateway.gateway_stack import Site, wait_until
from tests.integration.gateway.engine_control import held_engine
from tests.stack.ports import free_port


async def test_the_probe_simulates_typing_and_gets_a_completion(
    quick_site: Site,
) -> None:
    before = await quick_site.num_records()

    result = await run_probe(quick_site.url, quick_site.acme_key, number=1)

    records = await quick_site.records_after(before, count=4)
    assert result.result in ("text", "nothing")
    assert result.code == ""
    assert len({record.request_id for record in records}) == 4  # one for each keystroke


async def test_an_invalid_key_is_reported_with_its_error_code(quick_site: Site) -> None:
    result = await run_probe(quick_site.url, "nobody's", number=2)

    assert (result.result, result.code, result.first_s) == ("refused", "invalid_api_key", None)


async def test_a_shed_request_counts_as_refused() -> None:
    async def shed_all(socket: ServerConnection) -> None:
        async for message in socket:
            request_id = json.loads(message)["id"]
            frame = {"type": "done", "id": request_id, "finish_reason": "shed"}
            await socket.send(json.dumps(frame))

    async with serve(shed_all, "127.0.0.1", 0) as server:
        (socket,) = server.sockets
        _, port = socket.getsockname()
        result = await run_probe(f"http://127.0.0.1:{port}", "key", number=4)

    assert (result.result, result.code) == ("refused", "shed")


async def test_an_unreachable_gateway_is_reported() -> None:
    result = await run_probe(f"http://127.0.0.1:{free_port()}", "key", number=3)

    assert result.result == "unreachable"


async def test_a_cancellation_is_counted_in_the_gateways_metrics(quick_site: Site) -> None:
    await quick_site.wait_for_deliveries()  # so that no completion of another test is cancelled now
    async with held_engine(quick_site.engine_url), quick_site.open_websocket() as socket:
        frame = {"type": "complete", "id": "1", "mode": "fim", "prefix": "a = ", "suffix": "\n"}
        await socket.send(json.dumps(frame | {"max_tokens": 400}))
        await socket.recv()
        num_before = await _num_cancellations(quick_site)
        await socket.send(json.dumps({"type": "cancel", "id": "1"}))
        while json.loads(await socket.recv())["type"] == "delta":
            pass

    async def is_counted() -> bool:
        return await _num_cancellations(quick_site) > num_before

    assert await wait_until(is_counted)
    assert await _num_cancellations(quick_site) == num_before + 1


async def _num_cancellations(site: Site) -> float:
    return parse_metrics(await site.metrics()).sum("caret_cancellation_seconds_count")


def test_the_probes_results_are_in_its_metrics() -> None:
    probe = ProbeMetrics()
    probe.record(ProbeResult(result="text", code="", first_s=0.03))
    probe.record(ProbeResult(result="refused", code="invalid_api_key", first_s=None))

    page = parse_metrics(generate_latest(probe.registry).decode())

    assert page.sum("caret_probe_requests_total", result="text") == 1
    assert page.sum("caret_probe_requests_total", code="invalid_api_key") == 1
    assert page.sum("caret_probe_successes") == 0  # the last request was refused
    assert page.sum("caret_probe_first_token_seconds_bucket", le="0.04") == 1
    assert pytest.approx(page.sum("caret_probe_first_token_seconds_sum")) == 0.03
