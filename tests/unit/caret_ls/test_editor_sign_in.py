"""Sign-in by the device flow: the messages that the editor shows, with a console over HTTP."""

import asyncio
import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest

from caret_ls.server import CaretServer, make_server
from tests.fakes.server_thread import serving_in_thread

_KEY: Final = "cpk_live_1"
_CODE: Final = "BCDF-GHJK"
_TIMEOUT_S: Final = 30.0
_CAPABILITIES: Final = {"caretSecretStorage": True, "caretProgressNotices": True}


class Console:
    """A console on which the user has not decided yet, until the test sets `answer`."""

    def __init__(self) -> None:
        self.answer: dict[str, Any] = {"error": "authorization_pending"}
        self.url = ""

    def respond(self, path: str) -> dict[str, Any]:
        if path == "/oauth/token":
            return self.answer
        page = f"{self.url}/device"
        return {
            "device_code": "d" * 30,
            "user_code": _CODE,
            "verification_uri": page,
            "verification_uri_complete": f"{page}?code={_CODE}",
            "expires_in": 600,
            "interval": 0.01,  # seconds between two polls
        }


@pytest.fixture
def console() -> Iterator[Console]:
    console = Console()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            body = json.dumps(console.respond(self.path)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    console.url = f"http://127.0.0.1:{server.server_address[1]}"
    with serving_in_thread(server):
        yield console


class Editor:
    """An LSP client that answers the server's requests and records all its messages."""

    def __init__(self, server: CaretServer) -> None:
        self.received: list[dict[str, Any]] = []
        self._protocol = server.protocol
        self._protocol.set_writer(self, include_headers=False)
        self._has_received = asyncio.Event()

    def write(self, data: bytes) -> None:
        """Receive a message. The server's protocol calls this method to send one."""
        message = json.loads(data)
        self.received.append(message)
        self._has_received.set()
        if "method" in message and "id" in message:
            response = {"id": message["id"], "result": None}
            asyncio.get_running_loop().call_soon(self.send, response)

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def send(self, message: dict[str, Any]) -> None:
        """Let the server handle a message, as if it came from the editor."""
        encoded = {"jsonrpc": "2.0", **message}
        self._protocol.handle_message(self._protocol.structure_message(encoded))

    async def wait_for(self, is_match: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait for a matching message, and return the first one."""
        async with asyncio.timeout(_TIMEOUT_S):
            while not (matches := [message for message in self.received if is_match(message)]):
                self._has_received.clear()
                await self._has_received.wait()
        return matches[0]

    async def wait_for_method(self, method: str) -> dict[str, Any]:
        message = await self.wait_for(lambda message: message.get("method") == method)
        params: dict[str, Any] = message["params"]
        return params

    async def wait_for_progress(self, kind: str) -> dict[str, Any]:
        message = await self.wait_for(
            lambda message: (
                message.get("method") == "$/progress" and message["params"]["value"]["kind"] == kind
            )
        )
        params: dict[str, Any] = message["params"]
        return params

    @property
    def messages(self) -> list[str]:
        """Return the texts of messages to the user."""
        return [
            message["params"]["message"]
            for message in self.received
            if message.get("method") == "window/showMessage"
        ]


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the settings folder of the language server, which is a temporary one."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "caret"


async def sign_in(console: Console, **experimental: bool) -> Editor:
    """Start a sign-in from an editor with these capabilities."""
    server = make_server()
    editor = Editor(server)
    params = {
        "processId": None,
        "rootUri": None,
        "capabilities": {"experimental": experimental},
        "initializationOptions": {"console_url": console.url},
    }
    editor.send({"id": 1, "method": "initialize", "params": params})
    await editor.wait_for(lambda message: message.get("id") == 1)
    await server.set_up()  # reads the settings, as the server does after `initialized`
    command = {"command": "caret.startSignIn", "arguments": []}
    editor.send({"id": 2, "method": "workspace/executeCommand", "params": command})
    return editor


def is_sign_in_running() -> bool:
    """Return whether a coroutine of `EditorSignIn` runs in a task."""
    return any("EditorSignIn" in str(task.get_coro()) for task in asyncio.all_tasks())


@pytest.fixture
async def editor(console: Console) -> Editor:
    """Return an editor that shows the code in a notice."""
    editor = await sign_in(console, **_CAPABILITIES)
    notice = await editor.wait_for_progress("begin")
    assert _CODE in notice["value"]["title"]
    assert notice["value"]["cancellable"]
    return editor


async def test_the_notice_with_the_code_closes_after_the_sign_in(
    console: Console, editor: Editor
) -> None:
    console.answer = {"access_token": _KEY}

    await editor.wait_for_progress("end")

    assert await editor.wait_for_method("$/caret/signedIn") == {"key": _KEY}
    await editor.wait_for_method("window/showMessage")
    assert editor.messages == ["Caret is signed in."]


async def test_the_notice_closes_if_the_user_denies_the_sign_in(
    console: Console, editor: Editor
) -> None:
    console.answer = {"error": "access_denied"}

    await editor.wait_for_progress("end")

    await editor.wait_for_method("window/showMessage")
    assert editor.messages == ["Caret: the sign-in was denied, or your policy does not allow it."]


async def test_cancelling_the_notice_ends_the_sign_in(console: Console, editor: Editor) -> None:
    notice = await editor.wait_for_progress("begin")
    cancel = {"token": notice["token"]}
    assert is_sign_in_running()

    editor.send({"method": "window/workDoneProgress/cancel", "params": cancel})

    await editor.wait_for_progress("end")
    assert not is_sign_in_running()
    assert editor.messages == []


async def test_an_editor_without_notices_and_secret_storage_gets_messages_and_a_key_file(
    console: Console, config: Path
) -> None:
    editor = await sign_in(console)
    await editor.wait_for_method("window/showMessage")
    console.answer = {"access_token": _KEY}

    await editor.wait_for(lambda message: "is signed in" in str(message))

    assert [_CODE in text for text in editor.messages] == [True, False]
    assert (config / "key").read_text().strip() == _KEY
