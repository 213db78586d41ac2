"""Faulty HTTP responses of an engine, as raw bytes."""

import asyncio
from typing import Final

# A marker in the engine's responses: no client may see it.
SECRET: Final = "engine-internals"
_HEAD: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
_WORD: Final = b'data: {"choices":[{"index":0,"text":"word ","finish_reason":null}]}\n\n'

FAULTS: Final = {
    "garbage": _HEAD + b"data: {not json " + SECRET.encode() + b"\n\n",
    "garbage after a word": _HEAD + _WORD + b"data: \xff\xfe\x00\n\n",
    "binary": _HEAD + bytes(range(256)) * 64,
    "no HTTP": b"\x00\x01" + SECRET.encode() + b"\r\n\r\n",
    "no finish reason": _HEAD + _WORD + b"data: [DONE]\n\n",
    "nothing": _HEAD,
    "an error in a 200": _HEAD + b'data: {"error":{"message":"' + SECRET.encode() + b'"}}\n\n',
    "an error after a word": _HEAD + _WORD + b'data: {"error":"' + SECRET.encode() + b'"}\n\n',
    "a page in a 200": _HEAD + b"<html>" + SECRET.encode() + b"</html>",
    "JSON in a 200": _HEAD + b'{"detail":"' + SECRET.encode() + b'"}',
    "other JSON": _HEAD + b'data: {"choices":"' + SECRET.encode() + b'"}\n\n',
    "a 500": b"HTTP/1.1 500 Oops\r\nconnection: close\r\n\r\n" + SECRET.encode(),
    "a 400": b"HTTP/1.1 400 Bad\r\nconnection: close\r\n\r\n" + SECRET.encode(),
    "a 503": b"HTTP/1.1 503 Busy\r\nconnection: close\r\n\r\n" + SECRET.encode(),
    "a redirect": b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:9/\r\n"
    b"content-length: 0\r\n\r\n",
    "an endless line": _HEAD + b"data: " + b"x" * 4_000_000,
    # The chunk announces 0xffff bytes and has only a few.
    "half a chunk": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffff\r\ndata: ",
    "an abort": _HEAD + _WORD + b'data: {"choices":[{"text":"","finish_reason":"abort"}]}\n\n',
}
# The engine sends these bytes and nothing more, and keeps the connection open.
STALLS: Final = {
    "a stall": b"",
    "a stall after the head": _HEAD,
    "a stall after a word": _HEAD + _WORD,
}
# Faults after the first text: the client keeps the text and gets no error.
CUT_OFF: Final = (
    "garbage after a word",
    "an error after a word",
    "no finish reason",
    "an abort",
    "a stall after a word",
)


async def send_fault(name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send a faulty response, then raise ConnectionResetError.

    This error makes the caller close the connection. Raises another OSError if the client has
    already disconnected.
    """
    writer.write({**FAULTS, **STALLS}[name])
    await writer.drain()
    if name in STALLS:
        await reader.read(1)  # until the client gives up
    raise ConnectionResetError
