"""Health checks of local HTTP servers."""

import http.client
import urllib.request

_TIMEOUT_S = 2.0
# Ignores the environment's proxies, which cannot reach this machine's loopback address.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def answers_ok(url: str) -> bool:
    try:
        with _DIRECT.open(url, timeout=_TIMEOUT_S) as response:
            return bool(response.status == http.HTTPStatus.OK)
    except (OSError, http.client.HTTPException):  # refused, reset, timed out, or an error status
        return False
