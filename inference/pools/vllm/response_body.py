"""Reads the body of an engine's response."""

import aiohttp


async def read_body(response: aiohttp.ClientResponse, *, max_bytes: int) -> bytes:
    """Return the body, but at most its first `max_bytes`.

    A body may arrive in several parts, and `response.content.read` may return only the first ones.
    """
    body = bytearray()
    async for part in response.content.iter_any():
        body += part
        if len(body) >= max_bytes:
            break
    return bytes(body[:max_bytes])
