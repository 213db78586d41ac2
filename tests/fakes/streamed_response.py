"""A response whose body arrives in two parts, as it can over a network."""

import asyncio

from aiohttp import web

_LAST_PART_BYTES = 8  # less than the last line of each text
_PAUSE_S = 0.02  # the client has read the first part before the second one is sent


async def stream_in_two_parts(request: web.Request, text: str) -> web.StreamResponse:
    """Send the text. The first part ends within its last line."""
    body = text.encode()
    response = web.StreamResponse()
    await response.prepare(request)
    await response.write(body[:-_LAST_PART_BYTES])
    await asyncio.sleep(_PAUSE_S)
    await response.write(body[-_LAST_PART_BYTES:])
    return response
