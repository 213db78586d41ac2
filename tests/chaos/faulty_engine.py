"""The synthetic engine, on any address, with responses that can be made faulty while it runs.

    python -m tests.chaos.faulty_engine --host HOST --port PORT --behaviour FILE

For each request, the engine reads its behaviour from the file: one of `Behaviour`. An empty file
means healthy.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final

import uvloop

from tests.benchmarks.synthetic_engine import Connection

_SLOW_S: Final = 3.0
_TORN_AFTER_S: Final = 0.003  # the stream has begun, and has not ended
_ERROR_RESPONSE: Final = b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 4\r\n\r\noops"
# The length of the second chunk, zz, is not a number.
_GARBAGE: Final = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\ndata:\r\nzz\r\n"


class Behaviour(StrEnum):
    """The engine's responses to requests for completions."""

    HEALTHY = ""
    SLOW = "slow"  # the first token comes after _SLOW_S
    SILENT = "silent"  # it accepts requests and never responds
    REFUSING = "refusing"  # 500 for each request
    GARBLED = "garbled"  # invalid HTTP
    TORN = "torn"  # it closes the connection in mid-stream


class FaultyConnection(Connection):
    """A connection of the synthetic engine that reads the behaviour before each response."""

    behaviour_file: Path

    def on_message_complete(self) -> None:
        # Only completions are POST requests; health and version checks get the usual response.
        if self._parser.get_method() != b"POST":
            super().on_message_complete()
            return
        match Behaviour(self.behaviour_file.read_text().strip()):
            case Behaviour.HEALTHY:
                self._send_part(0)  # the other parts follow by themselves
            case Behaviour.SLOW:
                self._loop.call_later(_SLOW_S, self._send_part, 0)
            case Behaviour.SILENT:
                pass
            case Behaviour.REFUSING:
                self._transport.write(_ERROR_RESPONSE)
            case Behaviour.GARBLED:
                self._transport.write(_GARBAGE)
            case Behaviour.TORN:
                self._send_part(0)
                self._loop.call_later(_TORN_AFTER_S, self._transport.close)


async def serve(host: str, port: int, behaviour_file: Path) -> None:
    FaultyConnection.behaviour_file = behaviour_file
    server = await asyncio.get_running_loop().create_server(
        FaultyConnection, host, port, backlog=1024
    )
    async with server:
        await server.serve_forever()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.faulty_engine")
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--behaviour", type=Path, required=True)
    options = parser.parse_args(arguments)
    uvloop.run(serve(options.host, options.port, options.behaviour))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
