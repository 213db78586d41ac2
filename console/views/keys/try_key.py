"""The test of an API key: the console requests a small completion from the gateway.

The console never stores a key's text, so the browser must send the text. The page that shows a new
key has the text; on other pages, the user pastes it. The gateway is called only with keys that the
member may see in the console.
"""

import json
import time
from dataclasses import dataclass
from typing import Final

import httpx
import redis
import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from caret.contracts.api_key import parse_key
from caret.contracts.policy import Mode
from caret.foundation.concurrency.bulkhead import BulkheadFull
from console.layout.htmx import render_page
from console.limits.outbound_limit import OUTBOUND_LIMIT
from console.limits.throttling import allow_key_test
from console.sign_in.current_member import CurrentMember, member_required
from console.texts.error_messages import REDIS_UNAVAILABLE
from console.texts.playground_texts import ERRORS, FINISHES
from console.usage_filters.number_format import format_milliseconds
from tenants.base.errors import Forbidden, NotFound
from tenants.identity.api_keys.queries import KeyView, find_key
from tenants.identity.api_keys.scopes import list_modes

_TIMEOUT_S: Final = 10.0
_MAX_KEY_CHARS: Final = 200
# Bodies of the requests, for a key with the mode fim and for other keys.
_COMPLETION: Final = {
    "prompt": "def mean(values):\n    return ",
    "suffix": "\n",
    "max_tokens": 16,
}
_CHAT: Final = {
    "messages": [{"role": "user", "content": "Answer with one word: ready"}],
    "max_tokens": 8,
}
# A policy may require a file path. Rules of content exclusion are unlikely to match this path.
_HEADERS: Final = {"X-Caret-Path": "caret_key_test.py"}
# Texts that differ from those of the playground.
_OWN_ERRORS: Final[dict[str, Promise]] = {
    "invalid_api_key": _("The gateway does not know this key. Check that you copied all of it."),
    "revoked_api_key": _("The key is revoked."),
    "expired_api_key": _("The key has expired."),
    "insufficient_scope": _("The key is not allowed to request this kind of completion."),
}
_OWN_FINISHES: Final[dict[str, Promise]] = {
    **FINISHES,
    "shed": _("There is no capacity right now. Try again in a moment."),
}
_OTHER_NETWORK: Final = _(
    "The gateway rejected the key. It works only from certain networks, and this console is in "
    "none of them: test it in your editor."
)

logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class KeyTest:
    """The result of the test."""

    is_good: bool
    message: str
    # Formatted time until the whole response, or until the request failed; "": no request was sent.
    took: str = ""
    text: str = ""  # the completion


def can_try(modes: frozenset[Mode]) -> bool:
    """Return whether one of the modes can be requested here: fim or chat."""
    return bool(modes & {Mode.FIM, Mode.CHAT})


@require_POST
@sensitive_post_parameters("key")
@member_required
def try_key(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    key_text = request.POST.get("key", "").strip()[:_MAX_KEY_CHARS]
    result = _test_key(member, key_text)
    status = 200 if result.took else 400  # 400: no request was sent to the gateway
    return render_page(
        request,
        member,
        "console/keys/try_key.html",
        {"result": result},
        part="console/keys/_test_result.html",
        status=status,
    )


def _test_key(member: CurrentMember, key_text: str) -> KeyTest:
    """Test the key, if it can be tested and the limits allow it."""
    key = _find_visible_key(member, key_text)
    if key is None:
        return _build_failure(
            gettext("The text does not match any key that you can see here. Paste the whole key.")
        )
    modes = list_modes(key.scopes)
    if not can_try(modes):
        return _build_failure(gettext("This key cannot request completions over HTTP."))
    try:
        if not allow_key_test(user_id=str(member.actor.user_id)):
            return _build_failure(gettext("Too many tests. Wait a minute, then try again."))
        with OUTBOUND_LIMIT.acquire(member.actor.tenant_id):
            return _request_completion(key_text, key, modes)
    except BulkheadFull:
        return _build_failure(gettext("Too many tests at the same time. Try again."))
    except redis.RedisError:
        return _build_failure(gettext(REDIS_UNAVAILABLE))


def _find_visible_key(member: CurrentMember, key_text: str) -> KeyView | None:
    """Return the key with this text. Only the lookup ID is compared; the gateway checks the rest.

    None: the text is no key, or the member may not see the key.
    """
    parsed = parse_key(key_text)
    if parsed is None:
        return None
    try:
        return find_key(actor=member.actor, lookup_id=parsed.lookup_id, now=timezone.now())
    except (Forbidden, NotFound):
        return None


def _request_completion(key_text: str, key: KeyView, modes: frozenset[Mode]) -> KeyTest:
    path, body = (
        ("/v1/completions", _COMPLETION) if Mode.FIM in modes else ("/v1/chat/completions", _CHAT)
    )
    began_s = time.perf_counter()
    try:
        response = httpx.post(
            settings.GATEWAY_URL.rstrip("/") + path,
            json=body,
            headers={"Authorization": f"Bearer {key_text}", **_HEADERS},
            timeout=_TIMEOUT_S,
        )
    except httpx.HTTPError as error:
        logger.warning("key_test.gateway_unreachable", reason=type(error).__name__)
        message = gettext("The console cannot reach the gateway at %(url)s.")
        return _build_failure(message % {"url": settings.GATEWAY_URL}, _format_time_since(began_s))
    return _read_response(response, _format_time_since(began_s), has_networks=bool(key.networks))


def _read_response(response: httpx.Response, took: str, *, has_networks: bool) -> KeyTest:
    body = _read_json(response)
    if not response.is_success:
        return _build_failure(_explain_error(response, body, has_networks=has_networks), took)
    finish_reason = response.headers.get("X-Caret-Finish-Reason", "stop")
    # The gateway accepted the key, but could not complete the request.
    if finish_reason in ("shed", "budget_exceeded", "error"):
        return _build_failure(str(_OWN_FINISHES[finish_reason]), took)
    message = gettext("The key works.")
    return KeyTest(is_good=True, message=message, took=took, text=_read_completion(body))


def _explain_error(response: httpx.Response, body: dict[str, object], *, has_networks: bool) -> str:
    """Return a message. `has_networks`: the key is valid only from certain networks."""
    error = body.get("error")
    details = error if isinstance(error, dict) else {}
    code = str(details.get("code", ""))
    if code == "invalid_api_key" and has_networks:
        return str(_OTHER_NETWORK)
    message = _OWN_ERRORS.get(code) or ERRORS.get(code)
    return str(message or details.get("message") or f"HTTP {response.status_code}")


def _read_json(response: httpx.Response) -> dict[str, object]:
    """Return the JSON object of the body; {} if the body is no JSON object."""
    try:
        body = response.json()
    except (json.JSONDecodeError, UnicodeDecodeError):
        return {}
    return body if isinstance(body, dict) else {}


def _read_completion(body: dict[str, object]) -> str:
    """Return the generated text in the response of either endpoint; "" if there is none."""
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else {}
    if not isinstance(first, dict):
        return ""
    message = first.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return str(first.get("text") or content or "")  # `text` of /v1/completions, `content` of chat


def _build_failure(message: str, took: str = "") -> KeyTest:
    return KeyTest(is_good=False, message=message, took=took)


def _format_time_since(began_s: float) -> str:
    return format_milliseconds((time.perf_counter() - began_s) * 1_000)
