"""Streams one answer of `/v1/chat/completions`. Closing the iterator cancels it at the gateway.

Behind a proxy that buffers, the whole answer arrives at once, at the end. So the wait for the next
bytes may be as long as the gateway's time limit for a chat.
"""

import asyncio
import json
import logging
import ssl
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from caret_ls.gateway_connection import Address

if TYPE_CHECKING:
    import httpx

_PATH: Final = "/v1/chat/completions"
_CONNECT_S: Final = 10.0
_READ_S: Final = 330.0  # the gateway ends a chat after 300 s
_DATA: Final = "data:"  # server-sent events: the start of a line with data
_DONE: Final = "[DONE]"  # the data of the last event
_OFFLINE: Final = "offline"
_log = logging.getLogger(__name__)


class ChatFailed(Exception):
    """The gateway refused the chat, or its answer ended early.

    `code` is the gateway's error code, or `offline`.
    """

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class ChatEnd:
    finish_reason: str


async def stream_chat(
    address: Address, body: dict[str, Any]
) -> AsyncGenerator[str | ChatEnd, None]:
    """Yield the texts of an answer, and at the end a ChatEnd. Raises ChatFailed."""
    # httpx is slow to import. So only a chat imports it, in a thread: suggestions do not wait.
    await asyncio.to_thread(import_module, "httpx")
    import httpx

    timeout = httpx.Timeout(_READ_S, connect=_CONNECT_S)
    headers = {"Authorization": f"Bearer {address.key}", "X-Caret-Editor": address.editor}
    try:
        async with (
            httpx.AsyncClient(timeout=timeout, verify=ssl.create_default_context()) as client,
            client.stream("POST", address.url + _PATH, json=body, headers=headers) as response,
        ):
            if response.status_code != httpx.codes.OK:
                content = await response.aread()
                raise ChatFailed(_code_of(_decode(content.decode(errors="replace"))))
            async for part in _read_events(response):
                yield part
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        _log.info("chat.offline error=%s", type(error).__name__)
        raise ChatFailed(_OFFLINE) from error


async def _read_events(response: "httpx.Response") -> AsyncGenerator[str | ChatEnd, None]:
    """Yield the texts of the events, and then a ChatEnd. Raises ChatFailed."""
    finish_reason = ""
    async for line in response.aiter_lines():
        data = line.removeprefix(_DATA).strip()
        if not line.startswith(_DATA) or not data:
            continue
        if data == _DONE:
            break
        event = _decode(data)
        if "error" in event:
            raise ChatFailed(_code_of(event))
        for choice in _choices_of(event):
            if text := _text_of(choice):
                yield text
            # `caret_finish_reason` is more exact than OpenAI's `finish_reason`. It is sent only if
            # the two differ, so not for `stop` and `length`.
            reason = event.get("caret_finish_reason") or choice.get("finish_reason")
            finish_reason = str(reason or finish_reason)
    if not finish_reason:  # the connection ended early
        raise ChatFailed(_OFFLINE)
    yield ChatEnd(finish_reason)


def _decode(text: str) -> dict[str, Any]:
    """Decode a JSON object. Return {} for any other text, such as a proxy's error page."""
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _choices_of(event: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the choices of an event; [] if there are none, or if they are malformed."""
    choices = event.get("choices")
    if not isinstance(choices, list):
        return []
    return [choice for choice in choices if isinstance(choice, dict)]


def _text_of(choice: dict[str, Any]) -> str:
    """Return the text of a choice; "" if there is none, or if it is malformed."""
    delta = choice.get("delta")
    content = delta.get("content") if isinstance(delta, dict) else None
    return content if isinstance(content, str) else ""


def _code_of(event: dict[str, Any]) -> str:
    """Return the code of an error; `offline` if there is none."""
    error = event.get("error")
    return str(error.get("code") or _OFFLINE) if isinstance(error, dict) else _OFFLINE
