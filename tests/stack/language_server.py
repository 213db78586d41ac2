"""`caret-ls` as an editor starts it, and the editor's side of the protocol: raw JSON-RPC."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final

TIMEOUT_S: Final = 60.0
_NO_KEYRING: Final = "keyring.backends.null.Keyring"  # a keyring that stores nothing
# The trigger kinds of an inline completion in the Language Server Protocol.
INVOKED: Final = 1
AUTOMATIC: Final = 2


@dataclass(slots=True)
class LanguageServer:
    process: asyncio.subprocess.Process
    statuses: list[str] = field(default_factory=list)  # in the order of their notifications
    num_grown: int = 0  # notifications of more text for a shown suggestion
    chat_parts: list[dict[str, Any]] = field(default_factory=list)  # contexts and texts of chats
    _responses: dict[int, asyncio.Future[Any]] = field(default_factory=dict)
    _ids: "count[int]" = field(default_factory=lambda: count(1))
    _notified: asyncio.Event = field(default_factory=asyncio.Event)

    async def request(self, method: str, params: Any) -> Any:
        """Send a request and return its result.

        Raises RuntimeError for an error response.
        """
        identifier, response = self.begin_request(method, params)
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return await response
        finally:
            self._responses.pop(identifier, None)

    def begin_request(self, method: str, params: Any) -> tuple[int, asyncio.Future[Any]]:
        """Send a request. Return its ID, which a cancel needs, and its future response."""
        identifier = next(self._ids)
        self._responses[identifier] = asyncio.get_running_loop().create_future()
        self._send({"id": identifier, "method": method, "params": params})
        return identifier, self._responses[identifier]

    def notify(self, method: str, params: Any) -> None:
        """Send a notification, which gets no response."""
        self._send({"method": method, "params": params})

    async def wait_for_status(self, status: str) -> None:
        """Wait until this is the last reported status."""
        async with asyncio.timeout(TIMEOUT_S):
            while self.statuses[-1:] != [status]:
                self._notified.clear()
                await self._notified.wait()

    async def wait_for_growth(self, num_known: int) -> int:
        """Wait until the suggestion has grown more than `num_known` times; return `num_grown`."""
        async with asyncio.timeout(TIMEOUT_S):
            while self.num_grown <= num_known:
                self._notified.clear()
                await self._notified.wait()
        return self.num_grown

    async def send_chat(self, text: str, **params: Any) -> dict[str, Any]:
        """Send a chat message; when the answer has ended, return the result of the request."""
        result: dict[str, Any] = await self.request("$/caret/chat", chat_params(text, **params))
        return result

    async def wait_for_chat_text(self) -> str:
        """Wait until a part of a chat's answer has arrived, and return it."""
        async with asyncio.timeout(TIMEOUT_S):
            while not (text := self.chat_text):
                self._notified.clear()
                await self._notified.wait()
        return text

    @property
    def chat_text(self) -> str:
        return "".join(part.get("text", "") for part in self.chat_parts)

    async def listen(self) -> None:
        """Read messages until the server's output ends."""
        assert self.process.stdout is not None
        while header := await self.process.stdout.readline():
            length = int(header.split(b":")[1])  # the server sends Content-Length first
            while (await self.process.stdout.readline()).strip():
                pass  # other headers
            self._on_message(json.loads(await self.process.stdout.readexactly(length)))

    def _on_message(self, message: dict[str, Any]) -> None:
        if message.get("method") == "$/caret/status":
            self.statuses.append(message["params"]["status"])
            self._notified.set()
        if message.get("method") == "$/caret/suggestionGrown":
            self.num_grown += 1
            self._notified.set()
        if message.get("method") in ("$/caret/chatContext", "$/caret/chatText"):
            self.chat_parts.append(message["params"])
            self._notified.set()
        response = self._responses.get(message.get("id", 0))
        # A message with a method is no response. A response may also arrive when nobody waits for
        # it any more, after a time-out or a cancel.
        if "method" in message or response is None or response.done():
            return
        if "error" in message:
            response.set_exception(RuntimeError(message["error"]["message"]))
        else:
            response.set_result(message["result"])

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))


def chat_params(text: str, **params: Any) -> dict[str, Any]:
    return {"token": "1", "turns": [{"role": "user", "text": text}]} | params


def environment_of(home: Path, **variables: str) -> dict[str, str]:
    """Return the environment of a user whose home is empty."""
    inherited = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    folders = {name: str(home / name) for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME")}
    return (
        inherited | folders | {"HOME": str(home), "PYTHON_KEYRING_BACKEND": _NO_KEYRING} | variables
    )


@asynccontextmanager
async def language_server(
    environment: dict[str, str],
    *,
    folder: Path,
    options: dict[str, Any] | None = None,
    can_grow: bool = False,
    command: Sequence[str] = (sys.executable, "-m", "caret_ls"),
) -> AsyncIterator[LanguageServer]:
    """Run a server that is initialized with `folder` as the workspace. Shut it down as editors do.

    `options` are the editor's settings for Caret. `can_grow` tells whether the editor can add text
    to a suggestion that it shows.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=environment,
        cwd=folder,
    )
    server = LanguageServer(process)
    listening = asyncio.create_task(server.listen())
    try:
        params = {
            "processId": os.getpid(),
            "clientInfo": {"name": "Neovim", "version": "0.12"},
            "rootUri": folder.as_uri(),
            "capabilities": {
                "general": {"positionEncodings": ["utf-8", "utf-16"]},
                "experimental": {"caretGrowingSuggestions": can_grow},
            },
            "initializationOptions": options or {},
        }
        await server.request("initialize", params)
        server.notify("initialized", {})
        yield server
        await server.request("shutdown", None)
        server.notify("exit", None)
        async with asyncio.timeout(TIMEOUT_S):
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)


@dataclass(slots=True)
class OpenBuffer:
    """An open file in the editor, and its cursor. Every change is sent to the server."""

    server: LanguageServer
    uri: str
    text: str
    cursor: int  # in characters
    version: int = 1

    @classmethod
    def opened(
        cls, server: LanguageServer, file: Path, text: str, *, language: str = "python"
    ) -> "OpenBuffer":
        buffer = cls(server, file.as_uri(), text, len(text))
        item = {"uri": buffer.uri, "languageId": language, "version": 1, "text": text}
        server.notify("textDocument/didOpen", {"textDocument": item})
        return buffer

    def type_text(self, text: str) -> None:
        """Insert a text at the cursor."""
        self.replace_text(self.cursor, self.cursor, text)

    def replace_text(self, start: int, end: int, text: str) -> None:
        """Replace a span of the text and put the cursor behind the new text."""
        span = {"start": self.position(start), "end": self.position(end)}
        self.text = self.text[:start] + text + self.text[end:]
        self.cursor = start + len(text)
        self.version += 1
        self.server.notify(
            "textDocument/didChange",
            {
                "textDocument": {"uri": self.uri, "version": self.version},
                "contentChanges": [{"range": span, "text": text}],
            },
        )

    def position(self, offset: int) -> dict[str, int]:
        """Return the position of a character. The protocol counts UTF-16 code units in a line."""
        before = self.text[:offset]
        line = before.rpartition("\n")[2]
        units = len(line.encode("utf-16-le", "surrogatepass")) // 2
        return {"line": before.count("\n"), "character": units}

    def completion_params(self, *, trigger: int = AUTOMATIC) -> dict[str, Any]:
        """Return the parameters of a request at the cursor."""
        return {
            "textDocument": {"uri": self.uri},
            "position": self.position(self.cursor),
            "context": {"triggerKind": trigger},
        }

    async def request_items(self, *, trigger: int = AUTOMATIC) -> list[dict[str, Any]]:
        """Request inline completions and return the items."""
        response = await self.server.request(
            "textDocument/inlineCompletion", self.completion_params(trigger=trigger)
        )
        return list(response["items"])

    def accept_item(self, item: dict[str, Any]) -> None:
        """Accept an item as an editor does: insert its text, then run its command.

        The item must replace only text after the cursor, in the cursor's line.
        """
        span = item["range"]
        replaced = span["end"]["character"] - span["start"]["character"]
        self.replace_text(self.cursor, self.cursor + replaced, item["insertText"])
        command = item["command"]
        self.server.begin_request(
            "workspace/executeCommand", {name: command[name] for name in ("command", "arguments")}
        )

    def close(self) -> None:
        self.server.notify("textDocument/didClose", {"textDocument": {"uri": self.uri}})
