"""The CSV files of the pools page, and the rows of replicas on the page itself."""

import csv
import re
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest
from django.http import HttpRequest, QueryDict
from django.template.loader import render_to_string
from django.utils import timezone
from pytest_django import Settings

from caret.contracts.drained_replicas import DRAINS_LOG, SCHEMA, DrainChange, encode_drain
from console.operator_admin.pools.csv_files import pools_csv
from tenants.base.redis_connection import connect_to_redis
from tenants.fleet.pools.pool_status import RejectedReplica
from tenants.fleet.pools.scraping.installation_status import read_installation_status
from tests.integration.operators.browsers import signed_in
from tests.integration.operators.gateways import TIMEOUT_S, Gateway
from tests.stack.waiting import wait_until

Row = dict[str, str]
# The beginning of the note about the period that the file covers.
SINCE = "Rates and first tokens cover "


def read_file(answer: Any) -> tuple[list[Row], list[str]]:
    """Return the file's rows and its notes."""
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    header, *lines = csv.reader(answer.content.decode().splitlines())
    rows = [dict(zip(header, line, strict=True)) for line in lines if len(line) > 1]
    return rows, [line[0] for line in lines if len(line) == 1]


def download(**query: str) -> tuple[list[Row], list[str]]:
    return read_file(signed_in().client.get("/operators/pools", {"as": "csv", **query}))


def test_replicas_are_exported_as_csv(gateway: Gateway) -> None:
    def are_measured() -> bool:  # the gateway reads the metrics of its replicas every second
        return {row["hit_rate"] for row in download()[0]} == {"0.925"}

    wait_until(are_measured, timeout_s=TIMEOUT_S)
    rows, (since,) = download()

    fast = {row["replica"]: row for row in rows if row["pool"] == "demo-fast"}
    assert set(fast) == set(gateway.replicas)
    for row in fast.values():
        assert (row["tier"], row["model"], row["state"]) == ("fast", "demo", "healthy")
        assert (row["drained"], row["running"], row["waiting"]) == ("false", "3.0", "2.0")
        assert (row["kv_usage"], row["hit_rate"]) == ("0.625", "0.925")
    assert since.startswith(SINCE)


def test_rejected_replicas_are_exported_with_the_reason(gateway: Gateway) -> None:
    installation = read_installation_status(now=timezone.now())
    rejected_replica = RejectedReplica(
        name="other:8000", reason="block_size", actual="16", expected="32", num_gateways=2
    )
    pools = [replace(installation.pools[0], rejected=[rejected_replica])]

    rows, _ = read_file(pools_csv(file_request(), replace(installation, pools=pools), changes=None))

    row = rows[-1]
    assert (row["replica"], row["state"]) == ("other:8000", "rejected")
    assert row["gateways_rejecting"] == "2"
    assert row["why"] == "The replica's cache uses blocks of 16 tokens instead of 32."


# `num_gateways_open` and `num_gateways_ejected`: gateways whose circuit breaker for the replica is
# open, and gateways that have ejected it as an outlier.
@pytest.mark.parametrize(
    ("fields", "state", "badges"),
    [
        ({}, "healthy", ["healthy"]),
        (
            {"num_gateways_open": 1, "is_up": False},
            "circuit breaker open",
            ["circuit breaker open"],
        ),
        ({"is_up": False, "num_gateways_ejected": 1}, "no metrics", ["no metrics"]),
        ({"num_gateways_ejected": 1}, "ejected", ["ejected"]),
        ({"num_gateways_ejected": 1, "is_drained": True}, "ejected", ["drained", "ejected"]),
        ({"is_drained": True}, "healthy", ["drained"]),
    ],
)
def test_the_file_and_the_page_show_the_state_of_a_replica(
    gateway: Gateway, fields: dict[str, Any], state: str, badges: list[str]
) -> None:
    installation = read_installation_status(now=timezone.now())
    pool = installation.pools[0]
    changed_replica = replace(pool.replicas[0], **fields)

    (row,), _ = read_file(
        pools_csv(
            file_request(),
            replace(installation, pools=[replace(pool, replicas=[changed_replica])]),
            changes=None,
        )
    )

    assert row["state"] == state
    assert row["drained"] == str(changed_replica.is_drained).lower()
    page_row = render_to_string("operators/pools/_replica.html", {"replica": changed_replica})
    assert re.findall(r'<span class="operators-badge [^>]*>([^<]*)</span>', page_row) == badges


@pytest.mark.parametrize(
    ("cooldown_s", "expected"), [(0.0, "the next request tries it"), (1.5, "retry in 1.5 s")]
)
def test_the_page_says_when_a_replica_is_tried_again_after_failures(
    gateway: Gateway, cooldown_s: float, expected: str
) -> None:
    replica = read_installation_status(now=timezone.now()).pools[0].replicas[0]
    open_replica = replace(replica, num_gateways_open=1, cooldown_s=cooldown_s)

    row = render_to_string("operators/pools/_replica.html", {"replica": open_replica})

    assert expected in row


def test_first_token_times_are_exported_as_csv(gateway: Gateway) -> None:
    gateway.complete()

    def list_fim_rows() -> list[Row]:
        rows, _ = download(of="first-tokens")
        return [row for row in rows if (row["pool"], row["mode"]) == ("demo-fast", "fim")]

    # The gateway counts a request after its response.
    wait_until(lambda: bool(list_fim_rows()), timeout_s=TIMEOUT_S)
    (fim,) = list_fim_rows()

    assert int(fim["requests"]) > 0
    assert float(fim["p50_ms"]) <= float(fim["p99_ms"])
    assert fim["target_ms"] == "150.0"
    assert fim["over"] == str(float(fim["p99_ms"]) > 150.0).lower()


def test_the_file_of_changes_lists_drains_or_states_that_redis_is_unreachable(
    gateway: Gateway,
) -> None:
    installation = read_installation_status(now=timezone.now())
    drain = DrainChange(
        schema=SCHEMA,
        replica=gateway.replicas[0],
        is_drained=True,
        operator="ola",
        reason="Ticket 4711",
        at_ms=0,
    )
    connect_to_redis().lpush(DRAINS_LOG, encode_drain(drain))

    rows, notes = download(of="changes")
    unknown_rows, notes_without_redis = read_file(
        # None: the changes are unknown, because Redis does not respond.
        pools_csv(file_request(of="changes"), installation, changes=None)
    )

    assert [row["replica"] for row in rows] == [gateway.replicas[0]]
    assert (notes, unknown_rows) == ([], [])
    assert notes_without_redis == [
        "Redis does not respond, so it is unknown which replicas are drained, and why."
    ]


def test_the_file_names_unreachable_gateways(gateway: Gateway, settings: Settings) -> None:
    settings.GATEWAY_METRICS = [gateway.metrics, "http://127.0.0.1:1"]

    rows, (silent, since) = download()

    assert rows
    assert silent == "One gateway does not respond. Its data is missing here."
    assert since.startswith(SINCE)


def test_the_page_links_to_the_files(gateway: Gateway) -> None:
    page = signed_in().client.get("/operators/pools").content.decode()

    for address in ("?as=csv", "?as=csv&amp;of=first-tokens"):
        assert f'href="{address}"' in page


def file_request(**query: str) -> HttpRequest:
    """Return a request for a CSV file of the pools page."""
    request = HttpRequest()
    request.GET = QueryDict(urlencode(query))
    return request
