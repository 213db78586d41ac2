"""Operators drain and undrain replicas on a page, and a real gateway follows."""

import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
import structlog

from caret.contracts.drained_replicas import DRAINS
from console.limits.throttling import MAX_TRIES
from tenants.base.operator_roles import OperatorRole
from tenants.base.redis_connection import connect_to_redis
from tenants.fleet.pools.draining import read_drains
from tests.integration.operators.browsers import (
    Account,
    Browser,
    make_account,
    new_browser,
    signed_in,
    with_recent_step_up,
)
from tests.integration.operators.gateways import Gateway, forget_drains

REASON = "Ticket 4711: its GPU is to be replaced"


@pytest.fixture(autouse=True)
def _undrain_all_replicas(gateway: Gateway) -> Iterator[None]:
    yield
    forget_drains(connect_to_redis())
    for replica in gateway.replicas:
        gateway.wait_for_metric(_metric_line(replica, is_drained=False))


def _metric_line(replica: str, *, is_drained: bool) -> str:
    return f'caret_replica_drained{{replica="{replica}"}} {float(is_drained)}'


def _address(replica: str, action: str = "drain") -> str:
    return f"/operators/replicas/{quote(replica, safe=':')}/{action}"


def _submit_form(browser: Browser, replica: str, action: str = "drain", **form: str) -> Any:
    """Submit the form that drains the replica, or the form that undrains it."""
    return browser.client.post(_address(replica, action), {"reason": REASON} | form)


def test_a_drained_replica_is_shown_with_its_reason(gateway: Gateway) -> None:
    first, second = gateway.replicas
    browser = with_recent_step_up()

    response = _submit_form(browser, first)
    gateway.wait_for_metric(_metric_line(first, is_drained=True))
    text = browser.client.get(response["Location"]).content.decode()

    assert response["Location"] == "/operators/pools?done=drained"
    assert "The replica is draining" in text
    assert f'href="{_address(first, "undrain")}"' in text
    assert f'href="{_address(second)}"' in text
    assert REASON in text
    assert "One replica is drained." in browser.client.get("/operators/").content.decode()


def test_draining_is_logged_with_the_operators_handle(gateway: Gateway) -> None:
    with structlog.testing.capture_logs() as lines:
        _submit_form(with_recent_step_up(), gateway.replicas[0])

    (line,) = [line for line in lines if line["event"] == "operator.replica_drained"]
    assert line["operator"].startswith("ola")
    assert (line["replica"], line["reason"]) == (gateway.replicas[0], REASON)


def test_a_drained_replica_can_be_undrained(gateway: Gateway) -> None:
    replica, _ = gateway.replicas
    browser = with_recent_step_up()
    _submit_form(browser, replica)

    confirmation = browser.client.get(_address(replica, "undrain"))
    response = _submit_form(browser, replica, "undrain")

    assert "If its cache is cold" in confirmation.content.decode()
    assert response["Location"] == "/operators/pools?done=undrained"
    assert read_drains(connect_to_redis()).drained == {}
    gateway.wait_for_metric(_metric_line(replica, is_drained=False))


def test_draining_the_last_replica_requires_its_name(gateway: Gateway) -> None:
    first, second = gateway.replicas
    browser = with_recent_step_up()
    _submit_form(browser, first)

    warned = browser.client.get(_address(second)).content.decode()
    without_name = _submit_form(browser, second)
    wrong_name = _submit_form(browser, second, confirmation="demo-fast")
    done = _submit_form(browser, second, confirmation=second)

    assert "This is the last replica of demo-fast, demo-quality that is not drained." in warned
    assert (without_name.status_code, wrong_name.status_code, done.status_code) == (400, 400, 302)
    assert f'name="reason" value="{REASON}"' in wrong_name.content.decode()
    assert 'name="confirmation" value="demo-fast"' in wrong_name.content.decode()
    assert set(read_drains(connect_to_redis()).drained) == {first, second}


def test_the_support_role_gets_no_links_and_is_refused(gateway: Gateway) -> None:
    replica, _ = gateway.replicas
    browser = with_recent_step_up(signed_in(OperatorRole.SUPPORT))

    page = browser.client.get("/operators/pools").content.decode()
    answers = [
        browser.client.get(_address(replica)),
        _submit_form(browser, replica),
        _submit_form(browser, replica, "undrain"),
    ]

    assert _address(replica) not in page
    assert [answer.status_code for answer in answers] == [403, 403, 403]
    assert read_drains(connect_to_redis()).drained == {}


def test_an_unknown_replica_is_not_found(gateway: Gateway) -> None:
    browser = with_recent_step_up()

    assert browser.client.get(_address("10.0.0.9:8000")).status_code == 404
    assert _submit_form(browser, "10.0.0.9:8000").status_code == 404


def test_draining_without_a_reason_is_refused(gateway: Gateway) -> None:
    replica, _ = gateway.replicas

    response = _submit_form(with_recent_step_up(), replica, reason="  ")

    assert response.status_code == 400
    assert "Enter a reason for the change log." in response.content.decode()
    assert read_drains(connect_to_redis()).drained == {}


@pytest.mark.parametrize(
    ("action", "problem"), [("drain", "already drained"), ("undrain", "not drained")]
)
def test_an_action_that_changes_nothing_is_a_conflict(
    gateway: Gateway, action: str, problem: str
) -> None:
    replica, _ = gateway.replicas
    browser = with_recent_step_up()
    if action == "drain":
        _submit_form(browser, replica)

    response = _submit_form(browser, replica, action)

    assert response.status_code == 409
    assert problem in response.content.decode()


def test_draining_requires_a_code(gateway: Gateway) -> None:
    replica, _ = gateway.replicas
    browser = signed_in()

    form = browser.client.get(_address(replica)).content.decode()
    response = _submit_form(browser, replica, code="000000")

    assert 'name="code"' in form
    assert response.status_code == 400
    assert "This code is wrong, expired or already used" in response.content.decode()
    assert f'name="reason" value="{REASON}"' in response.content.decode()
    assert read_drains(connect_to_redis()).drained == {}


def _sign_in_with_code() -> tuple[Account, Browser, str]:
    """Sign in. Return the account, the browser and the code that was used.

    A moment later, the authenticator app may show another code.
    """
    account, browser = make_account(), new_browser()
    form = account.form()
    assert browser.sign_in(form).status_code == 302
    return account, browser, form["code"]


def test_a_code_of_the_authenticator_app_suffices_for_ten_minutes(gateway: Gateway) -> None:
    first_replica, other_replica = gateway.replicas
    account, browser, code = _sign_in_with_code()

    reused_code = _submit_form(browser, first_replica, code=code)
    new_code = _submit_form(browser, first_replica, code=account.code(later_by=1))
    # The last replica, so the form needs its name.
    without_code = _submit_form(browser, other_replica, confirmation=other_replica)

    assert reused_code.status_code == 400  # the operator signed in with this code
    assert (new_code.status_code, without_code.status_code) == (302, 302)


def test_a_new_code_is_required_after_ten_minutes(gateway: Gateway) -> None:
    browser = with_recent_step_up()
    stored_session = browser.session()
    stored_session["confirmed_until"] = time.time() - 1
    stored_session.save()

    assert _submit_form(browser, gateway.replicas[0]).status_code == 400
    assert read_drains(connect_to_redis()).drained == {}


def test_guessing_codes_is_throttled(gateway: Gateway) -> None:
    account, browser, _ = _sign_in_with_code()
    replica, _ = gateway.replicas
    for _ in range(MAX_TRIES):
        _submit_form(browser, replica, code="000000")

    response = _submit_form(browser, replica, code=account.code(later_by=1))

    assert "Too many attempts." in response.content.decode()
    assert read_drains(connect_to_redis()).drained == {}


def test_a_drained_replica_that_no_gateway_reports_can_be_undrained(gateway: Gateway) -> None:
    replica, _ = gateway.replicas
    browser = with_recent_step_up()
    _submit_form(browser, replica)
    unreported = "10.0.0.9:8000"
    drain = connect_to_redis().hget(DRAINS, replica)
    connect_to_redis().hset(DRAINS, unreported, drain)

    page = browser.client.get("/operators/pools").content.decode()
    response = _submit_form(browser, unreported, "undrain")

    assert "Drained replicas that no gateway reports" in page
    assert response.status_code == 302
    assert set(read_drains(connect_to_redis()).drained) == {replica}
