"""Chromium without a window, driven by its DevTools protocol: as much as the tests need.

No driver package: the protocol is JSON over a WebSocket, and the browser is the system's own.
"""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from websockets.sync.client import ClientConnection, connect

from tests.stack.waiting import wait_until

CHROMIUM: Final = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
_BAD: Final = ("warning", "error")
_START_S: Final = 60.0
_ANSWER_S: Final = 30.0


class Page:
    """One tab. What the page is asked to do is done when a method returns."""

    def __init__(self, connection: ClientConnection, session_id: str | None = None) -> None:
        self._connection = connection
        self._session_id = session_id  # None: no tab, but the browser itself
        self._num_sent = 0
        self.complaints: list[str] = []  # what the console shows: refused scripts, errors

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        answer = self._answer(method, parameters)
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def open(self, url: str) -> None:
        """Or where it leads."""
        self.send("Page.navigate", url=url)
        self.until("document.readyState", "complete")

    def run(self, script: str) -> Any:
        result = self.send("Runtime.evaluate", expression=script, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def until(self, script: str, expected: object) -> None:
        """A page that is just being left cannot answer; it is asked again."""

        def is_so() -> bool:
            answer = self._answer("Runtime.evaluate", {"expression": script})
            value = answer.get("result", {}).get("result", {}).get("value")
            return bool(value == expected)

        wait_until(is_so, timeout_s=_ANSWER_S)

    def click(self, selector: str) -> None:
        """As a person's click: passkeys are given to nothing less."""
        found = f"document.querySelector({json.dumps(selector)})"
        self.until(f"!!{found} && {found}.offsetParent !== null", True)
        box = json.loads(
            self.run(
                f"(() => {{ const element = {found}; element.scrollIntoView();"
                " return JSON.stringify(element.getBoundingClientRect()); })()"
            )
        )
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def fill(self, selector: str, text: str) -> None:
        self.until(f"!!document.querySelector({json.dumps(selector)})", True)
        self.run(f"document.querySelector({json.dumps(selector)}).focus()")
        self.send("Input.insertText", text=text)

    def _answer(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        self._num_sent += 1
        message = {"id": self._num_sent, "method": method, "params": parameters}
        session = {} if self._session_id is None else {"sessionId": self._session_id}
        self._connection.send(json.dumps(message | session))
        while (answer := self._received()).get("id") != self._num_sent:
            pass
        return answer

    def _received(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self._connection.recv(timeout=_ANSWER_S))
        entry = message.get("params", {}).get("entry", {})
        if message.get("method") == "Runtime.exceptionThrown" or entry.get("level") in _BAD:
            self.complaints.append(json.dumps(message["params"]))
        return message


@contextmanager
def chromium() -> Iterator[Page]:
    """A browser that knows nobody yet, at an empty page; ended with the context."""
    assert CHROMIUM is not None
    # Processes of it that outlive the first may still write there.
    with tempfile.TemporaryDirectory(
        prefix="caret-chromium-", ignore_cleanup_errors=True
    ) as folder:
        process = subprocess.Popen(
            [
                CHROMIUM,
                "--headless=new",
                "--remote-debugging-port=0",
                f"--user-data-dir={folder}",
                "--no-first-run",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-sandbox",  # none for root; it is shown our own pages only
                "about:blank",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            with connect(_address(Path(folder)), max_size=None) as connection:
                yield _first_page(connection)
        finally:
            process.terminate()
            process.wait(timeout=_START_S)


def _address(folder: Path) -> str:
    said = folder / "DevToolsActivePort"
    wait_until(lambda: said.exists() and "\n/" in said.read_text(), timeout_s=_START_S)
    port, path = said.read_text().split("\n")[:2]
    return f"ws://127.0.0.1:{port}{path}"


def _first_page(connection: ClientConnection) -> Page:
    browser = Page(connection)
    targets = browser.send("Target.getTargets")["targetInfos"]
    target = next(target["targetId"] for target in targets if target["type"] == "page")
    session = browser.send("Target.attachToTarget", targetId=target, flatten=True)
    page = Page(connection, session["sessionId"])
    for domain in ("Page", "Runtime", "Log"):
        page.send(f"{domain}.enable")
    return page
