"""The operators' pages in the browser, with a real gateway that has answered requests."""

from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Browser, expect

from caret.capacity.inputs import CapacityInputs
from caret.capacity.plan import compute_hit_rate_row
from tests.browser.axe import find_colour_violations, find_violations
from tests.browser.chromium import ASYNC_SAFE
from tests.browser.sessions import operators_session
from tests.browser.tabs import DESKTOP, PHONE, Look, Tabs, tabs_of
from tests.integration.operators.gateways import Gateway, own_gateway
from tests.stack.console import console
from tests.stack.services import Services

PAGES: Final = (
    *("", "pools", "pools/demo-fast/add", "models", "experiments", "public-code"),
    *("slow-requests", "capacity", "cost"),
)
# The same inputs of the plan, for its functions and for its page. The query contains defaults, too.
_NUM_GPUS: Final = 19
_INPUTS: Final = CapacityInputs(requests_per_s=300, num_gpus=_NUM_GPUS)
_QUERY: Final = "requests_per_s=300&num_gpus=19&hit_rate=0.95&context_tokens=6000&output_tokens=24"


@pytest.fixture(scope="module")
def gateway(services: Services) -> Iterator[Gateway]:
    with own_gateway(services) as own:
        own.engine.wait_s = 0.2  # slower than the target of 150 ms, for the page of slow requests
        for number in range(3):
            own.complete(f"a{number} = ", path=f"module_{number}.py")
        own.engine.wait_s = 0.0
        yield own


@pytest.fixture(scope="module")
def operators_url(services: Services, gateway: Gateway) -> Iterator[str]:
    with console(services, **ASYNC_SAFE, CARET_GATEWAY_METRICS_URLS=gateway.metrics) as port:
        yield f"http://localhost:{port}"


@pytest.fixture
def tabs(browser: Browser, operators_url: str) -> Iterator[Tabs]:
    with tabs_of(browser, operators_url) as opened_tabs:
        yield opened_tabs


@pytest.mark.deep  # test_pages.py checks each page once
@pytest.mark.parametrize("address", PAGES)
def test_the_operator_pages_are_accessible_on_a_phone(tabs: Tabs, address: str) -> None:
    tab = tabs.open(operators_session(), Look(width=PHONE.width, motion="reduce"))

    tab.goto(f"/operators/{address}")
    for summary in tab.locator("main summary").all():
        summary.click()

    assert find_violations(tab) == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= PHONE.width
    tab.emulate_media(color_scheme="dark")
    assert find_colour_violations(tab) == []


def test_the_slider_moves_the_mark_and_shows_the_latencies(tabs: Tabs) -> None:
    tab = tabs.open(operators_session())
    tab.goto(f"/operators/capacity?{_QUERY}")
    mark, output = tab.locator(".operators-cliff-mark"), tab.locator("output")
    before = mark.get_attribute("x1")

    tab.locator("input[type=range]").fill("97.9")

    assert mark.get_attribute("x1") != before
    # The curve has 240 steps, up to the hit rate at which only 100 of 6,000 tokens are computed.
    # Step 239 is the nearest to 97.9%.
    nearest_hit_rate = (1 - 100 / 6_000) * 239 / 240
    latency = compute_hit_rate_row(_INPUTS, nearest_hit_rate, _NUM_GPUS).sustained
    assert latency is not None
    p50, p95, p99 = (
        round(quantile_ms, 1) for quantile_ms in (latency.p50_ms, latency.p95_ms, latency.p99_ms)
    )
    expect(output).to_have_text(f"97.9%: p50 {p50} ms, p95 {p95} ms, p99 {p99} ms")


def test_the_slider_shows_an_overload(tabs: Tabs) -> None:
    tab = tabs.open(operators_session())
    tab.goto(f"/operators/capacity?{_QUERY}")

    tab.locator("input[type=range]").fill("10")

    expect(tab.locator("output")).to_have_text("10%: overloaded")
    expect(tab.locator("output")).to_have_class("operators-over")


def test_without_scripts_the_planner_works_without_the_slider(tabs: Tabs) -> None:
    tab = tabs.open(operators_session(), Look(has_scripts=False))

    tab.goto("/operators/capacity?requests_per_s=50&hit_rate=0.9")

    expect(tab.locator("input[type=range]")).to_be_hidden()
    expect(tab.locator(".operators-cliff svg .p99").first).to_be_visible()
    tab.locator("input[name=hit_rate]").fill("0.8")
    tab.get_by_role("button", name="Calculate").click()
    assert "hit_rate=0.8" in tab.url


def test_draining_with_a_wrong_code_shows_an_error_and_keeps_the_reason(
    tabs: Tabs, gateway: Gateway
) -> None:
    tab = tabs.open(operators_session(), Look(width=DESKTOP.width, has_scripts=False))
    tab.goto("/operators/pools")

    tab.get_by_role("link", name=f"Drain {gateway.replicas[0]}").first.click()
    tab.get_by_label("Reason").fill("Ticket 4711")
    tab.get_by_label("Code from your authenticator app").fill("000000")
    tab.get_by_role("button", name="Drain").click()

    expect(tab.get_by_label("Reason")).to_have_value("Ticket 4711")
    expect(tab.get_by_text("This code is wrong, expired or already used")).to_be_visible()
    tabs.errors.clear()  # the browser reports the response's status
