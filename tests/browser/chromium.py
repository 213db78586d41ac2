"""The system's Chromium without a window, driven by Playwright's synchronous interface."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

# The headless shell has the same engine without the browser's own interface: a new window takes
# 0.3 s of CPU time instead of 1.0, and a page 0.1 s instead of 0.5.
_NAMES: Final = ("chromium-headless-shell", "chromium", "google-chrome")
EXECUTABLE: Final = next(filter(None, map(shutil.which, _NAMES)), None)
# With this variable, Django allows database access in a thread whose event loop is running.
_ALLOW_UNSAFE: Final = "DJANGO_ALLOW_ASYNC_UNSAFE"
# For the environment of processes that a test starts while a browser runs: there, Django keeps its
# check.
ASYNC_SAFE: Final = {_ALLOW_UNSAFE: ""}
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


# For all expectations. Playwright's default of 5 s is too short for two busy cores.
_EXPECT_MS: Final = 60_000.0


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run Chromium, or skip the test if it is not installed.

    Between two calls, Playwright leaves its event loop marked as running in this thread, although
    it is idle. Django would refuse database access there, and pytest's own loop would not
    start. So no browser outlives its test file (CONTRIBUTING.md, "Test in a browser").
    """
    if EXECUTABLE is None:
        pytest.skip("neither Chromium nor Google Chrome is installed")
    with sync_playwright() as playwright:
        os.environ[_ALLOW_UNSAFE] = "true"
        expect.set_options(timeout=_EXPECT_MS)
        browser = playwright.chromium.launch(executable_path=EXECUTABLE, args=list(_ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()
            del os.environ[_ALLOW_UNSAFE]
