"""One console over the session's Postgres and Valkey, and one Chromium for each test file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.stack.django_setup import pytest_configure as pytest_configure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser
    from pytest_django import DjangoDbBlocker

    from tests.browser.sample_data import Scene
    from tests.browser.tabs import Tabs
    from tests.stack.services import Services


@pytest.fixture(autouse=True)
def _database(database: None) -> None:
    """Give all of these tests Postgres and Valkey."""


@pytest.fixture(scope="module", autouse=True)
def _product_password_hasher() -> Iterator[None]:
    """Hash passwords as the console's process does.

    To the console, the hashes of the tests' own hasher are outdated. It would replace them at a
    sign-in, and that would end the user's other sessions.
    """
    from django.test import override_settings

    from caret.settings import PASSWORD_HASHERS

    with override_settings(PASSWORD_HASHERS=PASSWORD_HASHERS):
        yield


@pytest.fixture(scope="session")
def console_url(services: Services) -> Iterator[str]:
    # Imported here: plugins are loaded before Django is set up, models after it.
    from tests.browser.chromium import ASYNC_SAFE
    from tests.stack.console import console

    with console(services, **ASYNC_SAFE) as port:
        yield f"http://localhost:{port}"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from tests.browser.chromium import chromium

    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def scene(services: Services, django_db_blocker: DjangoDbBlocker) -> Iterator[Scene]:
    """Make a company; afterwards delete rows that would keep workers of other tests busy."""
    from tests.browser.sample_data import Scene
    from tests.fixtures.companies import ACME_PEOPLE, make_company

    with django_db_blocker.unblock():
        scene = Scene(make_company("acme", ACME_PEOPLE))
        yield scene
        scene.clear()


@pytest.fixture
def tabs(browser: Browser, console_url: str) -> Iterator[Tabs]:
    """Open tabs; errors that the browser reports in them fail the test."""
    from tests.browser.tabs import tabs_of

    with tabs_of(browser, console_url) as opened_tabs:
        yield opened_tabs
