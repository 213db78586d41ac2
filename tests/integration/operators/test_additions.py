"""Operators add replicas to a pool and remove them on a page, and a real gateway follows."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
import structlog

from caret.contracts.added_replicas import ADDITIONS, SCHEMA, ReplicaChange, encode_replica_change
from tenants.base.operator_roles import OperatorRole
from tenants.base.redis_connection import connect_to_redis
from tenants.fleet.pools.added_replicas import read_additions
from tests.integration.operators.browsers import Browser, signed_in, with_recent_step_up
from tests.integration.operators.gateways import Gateway, forget_additions

POOL = "demo-fast"
REASON = "Ticket 4711: the third server is there"
UNREACHABLE = "localhost:1"  # allowed, but nothing listens there


@pytest.fixture(autouse=True)
def _remove_all_additions(gateway: Gateway) -> Iterator[None]:
    yield
    forget_additions(connect_to_redis())


def _add(browser: Browser, pool: str = POOL, **form: str) -> Any:
    form_fields = {"url": f"http://{UNREACHABLE}", "reason": REASON} | form
    return browser.client.post(f"/operators/pools/{pool}/add", form_fields)


def _remove(browser: Browser, replica: str = UNREACHABLE, **form: str) -> Any:
    return browser.client.post(_removal_path(replica), {"reason": REASON} | form)


def _removal_path(replica: str) -> str:
    return f"/operators/pools/{POOL}/replicas/{quote(replica, safe=':')}/remove"


def _open_pools_page(browser: Browser) -> str:
    return str(browser.client.get("/operators/pools").content.decode())


def test_an_added_replica_is_shown_with_its_reason(gateway: Gateway) -> None:
    browser = with_recent_step_up()

    response = _add(browser)
    gateway.wait_for_metric(
        'caret_replica_rejected{actual="",expected="",pool="demo-fast",reason="unreachable"'
    )
    text = _open_pools_page(browser)

    assert response["Location"] == "/operators/pools?done=added"
    assert "The replica does not respond." in text
    assert f'href="{_removal_path(UNREACHABLE)}"' in text
    assert REASON in text
    assert "added to demo-fast" in text


def test_an_addition_that_no_gateway_has_read_is_shown_as_waiting(gateway: Gateway) -> None:
    waiting_address = "10.12.0.9:8000"
    addition = ReplicaChange(
        schema=SCHEMA,
        pool=POOL,
        url=f"http://{waiting_address}",
        is_added=True,
        operator="ola",
        reason=REASON,
        at_ms=1_770_000_000_000,
    )
    # The version in Redis is not raised, so gateways do not read the addition.
    connect_to_redis().hset(ADDITIONS, f"{POOL} {waiting_address}", encode_replica_change(addition))

    text = _open_pools_page(signed_in())

    assert "Added, waiting for gateways" in text
    assert f'href="{_removal_path(waiting_address)}"' in text


def test_an_added_replica_can_be_removed(gateway: Gateway) -> None:
    browser = with_recent_step_up()
    _add(browser)

    confirmation = browser.client.get(_removal_path(UNREACHABLE)).content.decode()
    response = _remove(browser)

    assert f"Remove {UNREACHABLE} from {POOL}" in confirmation
    assert response["Location"] == "/operators/pools?done=removed"
    assert "removed from demo-fast" in _open_pools_page(browser)
    assert _remove(browser).status_code == 404


def test_adding_a_replica_is_logged_with_the_operators_handle(gateway: Gateway) -> None:
    with structlog.testing.capture_logs() as lines:
        _add(with_recent_step_up())

    (line,) = [line for line in lines if line["event"] == "operator.replica_added"]
    assert line["operator"].startswith("ola")
    assert (line["pool"], line["replica"], line["reason"]) == (POOL, UNREACHABLE, REASON)


def test_an_invalid_form_gets_an_error_and_keeps_its_input(gateway: Gateway) -> None:
    form = {
        "url": "http://10.13.0.1:8000",  # outside the allowed networks
        "speculation": "ngram",
        "kv_events": "tcp://10.12.0.1:5",
    }
    response = _add(with_recent_step_up(), **form)
    text = response.content.decode()

    assert response.status_code == 400
    assert "The pools file allows replicas only in 10.12.0.0/16, localhost." in text
    assert 'value="http://10.13.0.1:8000"' in text
    assert 'value="tcp://10.12.0.1:5"' in text
    assert "<option selected>ngram</option>" in text
    assert f'value="{REASON}"' in text
    assert read_additions(connect_to_redis()).replicas == {}


def test_a_replica_that_is_already_in_the_pool_is_a_conflict(gateway: Gateway) -> None:
    response = _add(with_recent_step_up(), url=f"http://{gateway.replicas[1]}")

    assert response.status_code == 409
    assert "is already in this pool." in response.content.decode()


def test_the_support_role_gets_no_links_and_is_refused(gateway: Gateway) -> None:
    browser = with_recent_step_up(signed_in(OperatorRole.SUPPORT))

    answers = [
        browser.client.get(f"/operators/pools/{POOL}/add"),
        _add(browser),
        browser.client.get(_removal_path(UNREACHABLE)),
        _remove(browser),
    ]

    assert f"/operators/pools/{POOL}/add" not in _open_pools_page(browser)
    assert [answer.status_code for answer in answers] == [403, 403, 403, 403]
    assert read_additions(connect_to_redis()).replicas == {}


def test_an_unknown_pool_is_not_found(gateway: Gateway) -> None:
    browser = with_recent_step_up()

    assert browser.client.get("/operators/pools/nobodys/add").status_code == 404
    assert _add(browser, "nobodys").status_code == 404


def test_adding_a_replica_requires_a_code(gateway: Gateway) -> None:
    browser = signed_in()

    form = browser.client.get(f"/operators/pools/{POOL}/add").content.decode()
    response = _add(browser, code="000000")

    assert 'name="code"' in form
    assert response.status_code == 400
    assert "This code is wrong, expired or already used" in response.content.decode()
    assert f'value="http://{UNREACHABLE}"' in response.content.decode()
    assert read_additions(connect_to_redis()).replicas == {}
