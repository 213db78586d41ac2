"""The system's Chromium in headless mode, driven by Playwright's synchronous interface."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from playwright.sync_api import Browser, sync_playwright

EXECUTABLE: Final = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
# A variable of Django: allow database access in a thread whose event loop is running.
_UNSAFE: Final = "DJANGO_ALLOW_ASYNC_UNSAFE"
# Keeps the variable out of processes that a test starts while a browser runs.
GUARDED: Final = {_UNSAFE: ""}
_ARGUMENTS: Final = (
    "--no-sandbox",  # root cannot use the sandbox; the browser opens only our own pages
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
    """Run Chromium, or skip the test if it is not installed.

    Between two calls, Playwright leaves its event loop marked as running in this thread, although
    it does not run. Django would refuse database access there, and pytest's own loop would not
    start. So no browser outlives its test file (CONTRIBUTING.md, "Test in a browser").
    """
    if EXECUTABLE is None:
        pytest.skip("neither chromium nor google-chrome is installed")
    with sync_playwright() as playwright:
        os.environ[_UNSAFE] = "true"
        browser = playwright.chromium.launch(executable_path=EXECUTABLE, args=list(_ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()
            del os.environ[_UNSAFE]
