"""Chromium without a window, the system's own, driven by Playwright's synchronous interface."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from playwright.sync_api import Browser, sync_playwright

EXECUTABLE: Final = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
# Of Django's: whether its tables may be reached in a thread whose event loop is running.
_UNSAFE: Final = "DJANGO_ALLOW_ASYNC_UNSAFE"
# In the environment of processes that a test starts while a browser runs: for them it stands.
GUARDED: Final = {_UNSAFE: ""}
_ARGUMENTS: Final = (
    "--no-sandbox",  # none for root; it is shown our own pages only
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Skips the test where there is none.

    Playwright leaves its event loop marked as running in our thread between two calls, in which
    nothing of it runs. Django would refuse its tables there, and pytest's own loop would not start:
    no browser outlives its file of tests (ADR 77).
    """
    if EXECUTABLE is None:
        pytest.skip("the system has neither chromium nor google-chrome")
    with sync_playwright() as playwright:
        os.environ[_UNSAFE] = "true"
        browser = playwright.chromium.launch(executable_path=EXECUTABLE, args=list(_ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()
            del os.environ[_UNSAFE]
