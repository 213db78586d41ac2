"""The browser tabs that tests use: their sessions, their looks, and the errors in them."""

import pytest
from playwright.sync_api import Browser

from tests.browser.sessions import operators_session, session_of
from tests.browser.tabs import Look, Tabs, tabs_of
from tests.fixtures.companies import Cast


def test_a_server_side_session_signs_a_member_in(tabs: Tabs, cast: Cast) -> None:
    page = tabs.open(session_of(cast.acme.administrator))

    page.goto("/")

    assert page.url == f"{tabs.url}/"
    assert cast.acme.name in page.content()


def test_an_operator_session_opens_the_operator_pages(tabs: Tabs) -> None:
    page = tabs.open(operators_session())

    page.goto("/operators/")

    assert page.url == f"{tabs.url}/operators/"


def test_a_tab_without_a_session_is_anonymous(tabs: Tabs) -> None:
    page = tabs.open()

    page.goto("/")

    assert page.url == f"{tabs.url}/sign-in?next=/"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_tab_has_the_requested_look(tabs: Tabs, scheme: str) -> None:
    page = tabs.open(look=Look(width=390, scheme=scheme, motion="reduce"))  # type: ignore[arg-type]  # one of the two

    page.goto("/sign-in")

    assert page.evaluate(f"matchMedia('(prefers-color-scheme: {scheme})').matches")
    assert page.evaluate("matchMedia('(prefers-reduced-motion: reduce)').matches")
    assert page.evaluate("innerWidth") == 390


def test_a_blocked_script_is_recorded(tabs: Tabs) -> None:
    page = tabs.open()
    page.goto("/sign-in")

    with page.expect_console_message():
        page.evaluate("document.body.appendChild(document.createElement('script')).text = '1'")

    assert "Content Security Policy" in tabs.errors.pop()


def test_a_script_error_is_recorded(tabs: Tabs) -> None:
    page = tabs.open()
    page.goto("/sign-in")

    with page.expect_event("pageerror"):
        page.evaluate("setTimeout(() => { throw new Error('planted') }, 0)")

    assert "planted" in tabs.errors.pop()


def test_an_unexpected_error_fails_the_test(browser: Browser, console_url: str) -> None:
    with pytest.raises(AssertionError, match="planted"), tabs_of(browser, console_url) as tabs:
        tabs.errors.append("planted")
