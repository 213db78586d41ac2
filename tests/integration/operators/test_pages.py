"""The operators' pages over a real gateway: permissions, content, and unreachable gateways."""

import csv
import re
from itertools import pairwise
from typing import Any, Final

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from tenants.base.operator_roles import OperatorRole
from tests.fixtures.companies import Cast
from tests.integration.operators.browsers import signed_in
from tests.integration.operators.gateways import TIMEOUT_S, Gateway
from tests.stack.waiting import wait_until

PAGES: Final = ("", "pools", "slow-requests", "capacity", "cost", "tenants")
MAX_QUERIES: Final = 12
Query = dict[str, str] | None
CHANGES: Final = (  # forms, with any names of replicas and pools
    "replicas/x/drain",
    "replicas/x/undrain",
    "pools/x/add",
    "pools/x/replicas/y/remove",
)


def _page(
    address: str = "", *, role: OperatorRole = OperatorRole.ADMIN, query: Query = None
) -> Any:
    return signed_in(role).client.get(f"/operators/{address}", query or {})


def _text(address: str = "", query: Query = None) -> str:
    return _strip_tags(_page(address, query=query).content.decode())


def _strip_tags(html: str) -> str:
    """Return the text without tags, with single spaces."""
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def _text_with(*patterns: str, address: str = "", query: Query = None) -> str:
    """Return the text of the page as soon as it matches all patterns.

    A gateway counts a request after its response, and reads an engine's metrics every second.
    """
    texts: list[str] = []

    def is_complete() -> bool:
        texts.append(_text(address, query))
        return all(re.search(pattern, texts[-1]) for pattern in patterns)

    wait_until(is_complete, timeout_s=TIMEOUT_S)
    return texts[-1]


@pytest.mark.parametrize("address", PAGES)
@pytest.mark.parametrize("role", list(OperatorRole))
def test_every_operator_opens_the_pages(gateway: Gateway, address: str, role: OperatorRole) -> None:
    assert _page(address, role=role).status_code == 200


@pytest.mark.parametrize("address", [*PAGES, *CHANGES])
def test_anonymous_visitors_are_redirected_to_sign_in(address: str) -> None:
    response = Client().get(f"/operators/{address}")

    assert response["Location"].startswith("/operators/sign-in")


@pytest.mark.parametrize("address", PAGES)
def test_a_page_runs_few_queries(gateway: Gateway, address: str) -> None:
    client = signed_in().client

    with CaptureQueriesContext(connection) as queries:
        client.get(f"/operators/{address}")

    assert len(queries) <= MAX_QUERIES


@pytest.mark.parametrize("address", PAGES)
def test_no_page_has_inline_scripts_or_styles(gateway: Gateway, address: str) -> None:
    response = _page(address)
    html = response.content.decode()

    assert "unsafe" not in response["Content-Security-Policy"]
    for inline in ("<style", "style=", "<script>", "onclick", "javascript:"):
        assert inline not in html


@pytest.mark.parametrize("address", PAGES)
def test_the_menu_marks_the_current_page(gateway: Gateway, address: str) -> None:
    html = _page(address).content.decode()

    # The page of costs also marks the selected period.
    assert html.count('aria-current="page"') == (2 if address == "cost" else 1)
    assert f'href="/operators/{address}" aria-current="page"' in html


def test_the_overview_shows_five_figures_in_order(gateway: Gateway) -> None:
    gateway.complete()

    # Two requests wait at each of the two replicas, which are one engine.
    text = _text_with(
        r"KV cache up to 62\.5%, 4 waiting",
        r"Fill in the middle [\d.,]+ ms (within|over) 150 ms",
        re.escape(f"{gateway.metrics} responding"),
    )

    titles = ("First token, p99", "Cancelled", "Prefix-cache hit rate", "Accepted", "Load")
    assert all(text.index(one) < text.index(two) for one, two in pairwise(titles))


def test_pools_and_replicas_are_shown_as_the_gateway_reports_them(gateway: Gateway) -> None:
    gateway.complete(path="a.py")

    # No requests in flight. The other numbers are those of ENGINE_METRICS: running and waiting
    # requests, usage of the KV cache, and prefix-cache hit rate.
    states = [re.escape(f"{name} healthy 0 3 2 62.5% 92.5%") for name in gateway.replicas]
    text = _text_with(*states, address="pools")

    for pool in ("demo-fast Fast · demo", "demo-quality Quality · demo"):
        assert pool in text
    assert "No replicas have been drained, added or removed yet." in text


def test_an_unreachable_gateway_is_named_and_the_others_are_shown(
    gateway: Gateway, settings: Settings
) -> None:
    settings.GATEWAY_METRICS = [gateway.metrics, "http://127.0.0.1:1"]

    for address in ("", "pools"):
        text = _text(address)
        assert "One gateway does not respond. Its data is missing here. http://127.0.0.1:1" in text
        assert "demo-fast" in text
    silent = "One gateway does not respond. Its slow requests are missing here."
    assert silent in _text("slow-requests")


@pytest.mark.parametrize("address", PAGES)
def test_pages_open_without_any_gateway(settings: Settings, address: str) -> None:
    settings.GATEWAY_METRICS = ["http://127.0.0.1:1"]
    assert _page(address).status_code == 200

    settings.GATEWAY_METRICS = []
    assert _page(address).status_code == 200


@pytest.mark.parametrize("address", ["", "pools", "slow-requests", "models"])
def test_the_page_says_that_gateways_serve_no_metrics(settings: Settings, address: str) -> None:
    settings.GATEWAY_METRICS = []

    text = _text(address)

    assert "No gateway serves metrics for this page: CARET_METRICS_PORT is 0" in text
    assert "No gateway responds" not in text
    assert "met their targets" not in text


@pytest.mark.parametrize("address", ["", "pools"])
def test_the_page_says_that_no_gateway_responds(settings: Settings, address: str) -> None:
    settings.GATEWAY_METRICS = ["http://127.0.0.1:1"]

    assert "No gateway responds, so the state of pools and replicas is unknown." in _text(address)


def test_a_slow_request_is_shown_with_ids_and_stages_but_no_text(gateway: Gateway) -> None:
    gateway.engine.wait_s = 0.4
    try:
        gateway.complete("secret_word = ", path="secret/path.py")
    finally:
        gateway.engine.wait_s = 0.0

    stage = r"Engine, until the first token ([\d.,]+) ms 90\.0 ms over"  # 90 ms are its budget
    text = _text_with("× the target of 150 ms", stage, address="slow-requests")
    html = _page("slow-requests").content.decode()

    # Earlier tests of the module may have added requests that were slow by chance.
    stages_ms = [float(value.replace(",", "")) for value in re.findall(stage, text)]
    assert max(stages_ms) >= 400
    assert f'href="/operators/tenants/{gateway.tenant_id}"' in html
    assert 'class="operators-waterfall-bar operators-waterfall-over"' in html
    assert "secret" not in html


def test_slow_requests_are_filtered_by_mode_and_pool(gateway: Gateway) -> None:
    gateway.engine.wait_s = 0.4
    try:
        gateway.complete()
    finally:
        gateway.engine.wait_s = 0.0

    filters = {"mode": "fim", "pool": "demo-fast", "sort": "time"}
    _text_with("× the target", address="slow-requests", query=filters)
    for other_filters in ({"mode": "chat"}, {"pool": "demo-quality"}):
        assert "No slow requests match your filters." in _text("slow-requests", other_filters)


def test_the_file_of_slow_requests_names_unreachable_gateways(
    gateway: Gateway, settings: Settings
) -> None:
    gateway.engine.wait_s = 0.4
    try:
        gateway.complete()
    finally:
        gateway.engine.wait_s = 0.0
    _text_with("× the target", address="slow-requests")
    settings.GATEWAY_METRICS = [*settings.GATEWAY_METRICS, "http://127.0.0.1:1"]

    answer = _page("slow-requests", query={"mode": "fim", "as": "csv"})

    header, *lines, note = csv.reader(answer.content.decode().splitlines())
    rows = [dict(zip(header, line, strict=True)) for line in lines]
    newest = max(rows, key=_request_id)
    assert (newest["tenant_id"], newest["mode"], newest["pool"]) == (
        gateway.tenant_id,
        "fim",
        "demo-fast",
    )
    assert float(newest["first_token_ms"]) > float(newest["target_ms"])
    assert note == ["One gateway does not respond. Its slow requests are missing here."]


def _request_id(row: dict[str, str]) -> str:
    """Return the row's request ID. Request IDs increase with time."""
    return row["request_id"]


def test_the_capacity_page_starts_with_measured_values(gateway: Gateway) -> None:
    gateway.complete()

    # Two replicas are measured.
    text = _text_with("measured: 2", r"Tokens per prompt measured: \d+", address="capacity")
    response = _page("capacity")

    assert "<svg" in response.content.decode()
    assert "First token by prefix-cache hit rate" in text


def test_the_capacity_page_uses_the_values_of_its_query(gateway: Gateway) -> None:
    values = {
        "requests_per_s": "300",
        "num_gpus": "19",
        "hit_rate": "0.95",
        "context_tokens": "6000",
        "output_tokens": "24",
    }

    html = _page("capacity", query=values).content.decode()
    text = _strip_tags(html)

    # The same values as `manage.py capacity --requests-per-s 300` prints.
    assert re.search(r"Below a hit rate of 97\.8%, the p99 exceeds 100 ms", text)
    assert (
        "Prefilling a prompt takes 214 ms with a cold prefix cache and 3.6 ms with a warm one."
        in text
    )
    assert "19 replicas cost $57.00 per hour" in text
    assert 'name="num_gpus" value="19"' in html
    assert 'data-curve="[[0.0,' in html


@pytest.mark.parametrize(
    ("values", "field", "message"),
    [
        ({"hit_rate": "2"}, "hit_rate", "hit_rate is 2; it must be from 0 to 1."),
        ({"burst": "many"}, "burst", "Enter a number, such as 0.95."),
        ({"num_gpus": "2.5"}, "num_gpus", "Enter a whole number."),
        ({"num_gpus": "inf"}, "num_gpus", "Enter a whole number."),
        ({"requests_per_s": "nan"}, "requests_per_s", "requests_per_s is nan"),
    ],
)
def test_an_impossible_value_gets_an_error_at_its_field_and_keeps_the_input(
    gateway: Gateway, values: dict[str, str], field: str, message: str
) -> None:
    response = _page("capacity", query=values)
    html = response.content.decode()

    assert response.status_code == 400
    assert f'class="operators-wrong">{message}' in html
    assert f'name="{field}" value="{values[field]}"' in html
    assert "<svg" not in html.partition("<main")[2]


def test_an_overloaded_fleet_is_reported(gateway: Gateway) -> None:
    values = {"requests_per_s": "300", "num_gpus": "1", "context_tokens": "6000", "hit_rate": "0.9"}
    response = _page("capacity", query=values)

    assert response.status_code == 400
    assert "requests/s are more than 1 GPU can do" in response.content.decode()


def test_an_unknown_queue_or_pool_is_ignored(gateway: Gateway) -> None:
    assert _page("capacity", query={"queue": "<b>", "pool": "<b>"}).status_code == 200


def test_the_plot_is_in_the_readers_language(gateway: Gateway) -> None:
    client = signed_in().client
    client.cookies["caret-language"] = "de"

    values = {"requests_per_s": "300", "num_gpus": "19", "context_tokens": "6000"}
    page = client.get("/operators/capacity", values).content.decode()

    (picture,) = re.findall(r'<svg [^>]*viewBox="0 0 760 440".*?</svg>', page, re.DOTALL)
    for words in (
        "Erstes Token nach Trefferrate des Präfix-Caches",
        "300 Anfragen/s auf 19 Replikaten",
        "Trefferrate des Präfix-Caches, in Prozent",
        "erstes Token (ms)",
        "überlastet",
    ):
        assert words in picture


def test_search_finds_pages_and_tenants_for_operators_only(cast: Cast) -> None:
    page = _page("find", query={"q": cast.acme.slug}).content.decode()
    pages = _page("find", query={"q": "slow"}).content.decode()

    assert f'href="/operators/tenants/{cast.acme.tenant_id}"' in page
    assert '<a class="search-result" href="/operators/slow-requests">' in pages
    assert Client().get("/operators/find", {"q": cast.acme.slug}).status_code == 302


@pytest.mark.parametrize("text", ["\0", "x" * 5_000, "<b>", "%", "%00"])
def test_a_search_without_results_says_so(text: str) -> None:
    response = _page("find", query={"q": text})

    assert response.status_code == 200
    assert "Nothing matches" in response.content.decode()


def test_an_operator_chooses_the_theme_and_the_language() -> None:
    client = signed_in().client

    answer = client.post("/operators/preferences", {"theme": "dark", "next": "/operators/cost"})
    client.post("/operators/preferences", {"language": "de", "theme": "pink"})
    page = client.get("/operators/capacity").content.decode()

    assert answer["Location"] == "/operators/cost"
    assert 'data-theme="dark"' in page
    assert "Kapazität" in page


@pytest.mark.parametrize("target", ["https://evil.example", "//evil.example", "", "-inf"])
def test_preferences_lead_to_no_other_site(target: str) -> None:
    answer = signed_in().client.post("/operators/preferences", {"theme": "", "next": target})

    assert answer["Location"] == "/operators/"
