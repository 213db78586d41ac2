"""Adding and removing a replica with the page: permission, the form, and the gateway's reaction."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
import structlog

from caret.contracts.added_replicas import ADDITIONS, ReplicaChange, encode_addition
from tenants.base.operator_roles import OperatorRole
from tenants.base.redis_connection import connect
from tenants.fleet.pools.added_replicas import read_additions
from tests.integration.operators.browsers import Browser, confirmed, signed_in
from tests.integration.operators.gateways import Gateway, forget_additions

POOL = "demo-fast"
REASON = "Ticket 4711: the third server is there"
NOBODY = "localhost:1"  # allowed, but nothing listens there


@pytest.fixture(autouse=True)
def _nothing_is_added(gateway: Gateway) -> Iterator[None]:
    yield
    forget_additions(connect())


def _add(browser: Browser, pool: str = POOL, **form: str) -> Any:
    wish = {"url": f"http://{NOBODY}", "reason": REASON} | form
    return browser.client.post(f"/operators/pools/{pool}/add", wish)


def _remove(browser: Browser, replica: str = NOBODY, **form: str) -> Any:
    return browser.client.post(_removal(replica), {"reason": REASON} | form)


def _removal(replica: str) -> str:
    return f"/operators/pools/{POOL}/replicas/{quote(replica, safe=':')}/remove"


def _pools(browser: Browser) -> str:
    return str(browser.client.get("/operators/pools").content.decode())


def test_one_that_is_added_is_told_with_who_and_why(gateway: Gateway) -> None:
    browser = confirmed()

    response = _add(browser)
    gateway.until_told('caret_replica_rejected{found="",pool="demo-fast",reason="silent"')
    text = _pools(browser)

    assert response["Location"] == "/operators/pools?done=added"
    assert "The replica does not respond." in text
    assert f'href="{_removal(NOBODY)}"' in text
    assert REASON in text
    assert "added to demo-fast" in text


def test_one_that_no_gateway_has_asked_yet_is_told(gateway: Gateway) -> None:
    other = "10.12.0.9:8000"
    addition = ReplicaChange(1, POOL, f"http://{other}", True, "ola", REASON, 1_770_000_000_000)
    # The version is not raised, so gateways do not read it.
    connect().hset(ADDITIONS, f"{POOL} {other}", encode_addition(addition))

    text = _pools(signed_in())

    assert "Added, waiting for gateways" in text
    assert f'href="{_removal(other)}"' in text


def test_it_is_taken_out_again(gateway: Gateway) -> None:
    browser = confirmed()
    _add(browser)

    asked = browser.client.get(_removal(NOBODY)).content.decode()
    response = _remove(browser)

    assert f"Remove {NOBODY} from {POOL}" in asked
    assert response["Location"] == "/operators/pools?done=removed"
    assert "removed from demo-fast" in _pools(browser)
    assert _remove(browser).status_code == 404


def test_it_is_in_the_log_by_the_operators_handle(gateway: Gateway) -> None:
    with structlog.testing.capture_logs() as lines:
        _add(confirmed())

    (line,) = [each for each in lines if each["event"] == "operator.replica_added"]
    assert line["operator"].startswith("ola")
    assert (line["pool"], line["replica"], line["reason"]) == (POOL, NOBODY, REASON)


def test_what_is_wrong_stands_at_its_field_and_nothing_is_lost(gateway: Gateway) -> None:
    form = {
        "url": "http://10.13.0.1:8000",
        "speculation": "ngram",
        "kv_events": "tcp://10.12.0.1:5",
    }
    response = _add(confirmed(), **form)
    text = response.content.decode()

    assert response.status_code == 400
    assert "The pool configuration allows replicas only in 10.12.0.0/16, localhost." in text
    assert 'value="http://10.13.0.1:8000"' in text
    assert 'value="tcp://10.12.0.1:5"' in text
    assert "<option selected>ngram</option>" in text
    assert f'value="{REASON}"' in text
    assert read_additions(connect()).held == {}


def test_one_that_is_there_already_is_told(gateway: Gateway) -> None:
    response = _add(confirmed(), url=f"http://{gateway.replicas[1]}")

    assert response.status_code == 409
    assert "is already in this pool." in response.content.decode()


def test_support_sees_no_way_and_is_refused(gateway: Gateway) -> None:
    browser = confirmed(signed_in(OperatorRole.SUPPORT))

    answers = [
        browser.client.get(f"/operators/pools/{POOL}/add"),
        _add(browser),
        browser.client.get(_removal(NOBODY)),
        _remove(browser),
    ]

    assert f"/operators/pools/{POOL}/add" not in _pools(browser)
    assert [each.status_code for each in answers] == [403, 403, 403, 403]
    assert read_additions(connect()).held == {}


def test_a_pool_that_no_gateway_knows_is_not_there(gateway: Gateway) -> None:
    browser = confirmed()

    assert browser.client.get("/operators/pools/nobodys/add").status_code == 404
    assert _add(browser, "nobodys").status_code == 404


def test_a_session_of_before_is_not_enough(gateway: Gateway) -> None:
    browser = signed_in()

    form = browser.client.get(f"/operators/pools/{POOL}/add").content.decode()
    response = _add(browser, code="000000")

    assert 'name="code"' in form
    assert response.status_code == 400
    assert "This code is wrong, expired or already used" in response.content.decode()
    assert f'value="http://{NOBODY}"' in response.content.decode()
    assert read_additions(connect()).held == {}
