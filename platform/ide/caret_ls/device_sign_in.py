"""Signs in by the device flow (RFC 8628): the user confirms a code in the console.

Neither the API key nor the codes are logged.
"""

import asyncio
import http.client
import json
import logging
import platform
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

_CLIENT_ID: Final = "caret-ls"
_GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"
_DEFAULT_INTERVAL_S: Final = 5.0  # between two polls: RFC 8628, section 3.2
_SLOWER_BY_S: Final = 5.0  # added if the console answers `slow_down`: section 3.5
_MAX_INTERVAL_S: Final = 60.0  # failed polls double the interval up to this
_MAX_LIFETIME_S: Final = 3_600.0  # even if the codes are valid for longer
_TIMEOUT_S: Final = 10.0  # for one HTTP request
_MAX_RESPONSE_BYTES: Final = 64 * 1024
_MAX_NAME_CHARS: Final = 55  # of the editor or the machine; the console's limit
_log = logging.getLogger(__name__)

Json = dict[str, Any]
# Posts the fields of a form to a path of the console. Raises OSError, ValueError.
Post = Callable[[str, Mapping[str, str]], Awaitable[Json]]
Sleep = Callable[[float], Awaitable[None]]  # gets seconds


class SignInProblem(StrEnum):
    DENIED = "denied"  # by the user, or by the tenant's policy
    EXPIRED = "expired"  # the codes have expired, or the console refuses them for another reason
    UNREACHABLE = "unreachable"  # the console does not respond, or its response is not as expected


class SignInFailed(Exception):
    def __init__(self, problem: SignInProblem) -> None:
        super().__init__(problem.value)
        self.problem = problem


@dataclass(frozen=True, slots=True)
class DeviceCodes:
    device_code: str = field(repr=False)  # the secret with which this server polls
    user_code: str  # the user enters it in the console, or compares it with the code there
    verification_uri: str  # the page of the console where the user confirms the code
    verification_uri_complete: str  # the same page, with the code filled in
    expires_in_s: float  # from now on
    interval_s: float  # between two polls


async def request_codes(post: Post, *, editor: str) -> DeviceCodes:
    """Begin a sign-in: request the codes from the console. Raises SignInFailed."""
    fields = {
        "client_id": _CLIENT_ID,
        "editor": _keep_printable(editor) or "Editor",
        "machine": _keep_printable(platform.node()) or "unknown machine",
    }
    try:
        response = await post("/oauth/device_authorization", fields)
        page = _web_address(response["verification_uri"])
        return DeviceCodes(
            device_code=str(response["device_code"]),
            user_code=str(response["user_code"]),
            verification_uri=page,
            verification_uri_complete=_web_address(response.get("verification_uri_complete", page)),
            expires_in_s=min(float(response["expires_in"]), _MAX_LIFETIME_S),
            interval_s=float(response.get("interval", _DEFAULT_INTERVAL_S)),
        )
    except (OSError, KeyError, ValueError, TypeError) as error:
        _log.info("sign_in.no_codes error=%s", type(error).__name__)
        raise SignInFailed(SignInProblem.UNREACHABLE) from error


async def wait_for_key(post: Post, codes: DeviceCodes, sleep: Sleep = asyncio.sleep) -> str:
    """Poll until the user has decided, and return the API key. Raises SignInFailed."""
    fields = {"grant_type": _GRANT, "device_code": codes.device_code, "client_id": _CLIENT_ID}
    interval_s, waited_s = codes.interval_s, 0.0
    while waited_s < codes.expires_in_s:
        await sleep(interval_s)
        waited_s += interval_s
        try:
            response = await post("/oauth/token", fields)
        except (OSError, ValueError):  # poll less often after a timeout: section 3.5
            interval_s = min(interval_s * 2, _MAX_INTERVAL_S)
            continue
        if isinstance(response.get("access_token"), str):
            return str(response["access_token"])
        error = response.get("error")
        if error == "slow_down":
            interval_s += _SLOWER_BY_S
        elif error != "authorization_pending":
            denied = error == "access_denied"
            raise SignInFailed(SignInProblem.DENIED if denied else SignInProblem.EXPIRED)
    raise SignInFailed(SignInProblem.EXPIRED)


def make_post(console_url: str) -> Post:
    """Return a function that posts a form to the console and returns the JSON of the answer."""

    async def post(path: str, fields: Mapping[str, str]) -> Json:
        return await asyncio.to_thread(_post, console_url.rstrip("/") + path, fields)

    return post


def _post(url: str, fields: Mapping[str, str]) -> Json:
    """Post a form and return the JSON object of the answer.

    A status such as 400 raises nothing, because the protocol's errors are JSON objects, too. Raises
    OSError, ValueError.
    """
    body = urllib.parse.urlencode(fields).encode()
    request = urllib.request.Request(_web_address(url), body)  # noqa: S310  # checked
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as response:  # noqa: S310
            text = response.read(_MAX_RESPONSE_BYTES)
    except urllib.error.HTTPError as error:
        with error:
            text = error.read(_MAX_RESPONSE_BYTES)
    except http.client.HTTPException as error:  # the service does not speak HTTP
        raise OSError("not an HTTP response") from error
    document = json.loads(text)
    if not isinstance(document, dict):
        raise ValueError("not an object")
    return document


def _web_address(value: object) -> str:
    """Return the value if it is a URL with http or https. Raises ValueError."""
    text = str(value)
    if not text.startswith(("http://", "https://")):
        raise ValueError("not a web address")
    return text


def _keep_printable(text: str) -> str:
    """Return the printable characters, at most as many as the console accepts in a name."""
    return "".join(char for char in text if char.isprintable())[:_MAX_NAME_CHARS].strip()
