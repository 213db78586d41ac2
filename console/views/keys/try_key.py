"""Test of a key: one real, small completion through the gateway.

The console never stores a key's text, so the request must contain it: the page that shows a new key
sends it, or the user pastes it. Keys of other tenants are rejected before the gateway is called.
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
from console.limits.outbound_limit import OUTWARD
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
_COMPLETION: Final = {
    "prompt": "def mean(values):\n    return ",
    "suffix": "\n",
    "max_tokens": 16,
}
_CHAT: Final = {
    "messages": [{"role": "user", "content": "Answer with one word: ready"}],
    "max_tokens": 8,
}
# A policy may require a path. Content exclusion rules are unlikely to match this one.
_HEADERS: Final = {"X-Caret-Path": "caret_key_test.py"}
_OWN_ERRORS: Final[dict[str, Promise]] = {
    "invalid_api_key": _("The gateway does not know this key. Check that you copied all of it."),
    "revoked_api_key": _("The key is revoked."),
    "expired_api_key": _("The key has expired."),
    "insufficient_scope": _("The key is not allowed to request this kind of completion."),
}
# The playground's text for `shed` mentions the next keystroke.
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
    is_good: bool
    message: str
    took: str = ""  # time until the whole response; "": no request was sent
    text: str = ""  # the completion


def can_try(modes: frozenset[Mode]) -> bool:
    """Return whether the gateway has an HTTP protocol for one of the modes."""
    return bool(modes & {Mode.FIM, Mode.CHAT})


@require_POST
@sensitive_post_parameters("key")
@member_required
def try_key(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    secret = request.POST.get("key", "").strip()[:_MAX_KEY_CHARS]
    result = _test_key(member, secret)
    status = 200 if result.took else 400
    return render_page(
        request,
        member,
        "console/keys/try_key.html",
        {"result": result},
        part="console/keys/_test_result.html",
        status=status,
    )


def _test_key(member: CurrentMember, secret: str) -> KeyTest:
    key = _find_own_key(member, secret)
    if key is None:
        return _failed(
            gettext("The text does not match any key that you can see here. Paste the whole key.")
        )
    modes = list_modes(key.scopes)
    if not can_try(modes):
        return _failed(gettext("This key cannot request completions over HTTP."))
    try:
        if not allow_key_test(user_id=str(member.actor.user_id)):
            return _failed(gettext("Too many tests. Wait a minute, then try again."))
        with OUTWARD.acquire(member.actor.tenant_id):
            return _request_completion(secret, key, modes)
    except BulkheadFull:
        return _failed(gettext("Too many tests at the same time. Try again."))
    except redis.RedisError:
        return _failed(gettext(REDIS_UNAVAILABLE))


def _find_own_key(member: CurrentMember, secret: str) -> KeyView | None:
    """Return the key of the text; None for other tenants' keys and for other text."""
    parsed = parse_key(secret)
    if parsed is None:
        return None
    try:
        return find_key(actor=member.actor, lookup_id=parsed.lookup_id, now=timezone.now())
    except (Forbidden, NotFound):
        return None


def _request_completion(secret: str, key: KeyView, modes: frozenset[Mode]) -> KeyTest:
    path, body = (
        ("/v1/completions", _COMPLETION) if Mode.FIM in modes else ("/v1/chat/completions", _CHAT)
    )
    began_s = time.perf_counter()
    try:
        response = httpx.post(
            settings.GATEWAY_URL.rstrip("/") + path,
            json=body,
            headers={"Authorization": f"Bearer {secret}", **_HEADERS},
            timeout=_TIMEOUT_S,
        )
    except httpx.HTTPError as error:
        logger.warning("key_test.gateway_unreachable", reason=type(error).__name__)
        message = gettext("The console cannot reach the gateway at %(url)s.")
        return _failed(message % {"url": settings.GATEWAY_URL}, _took_since(began_s))
    return _read_response(response, _took_since(began_s), is_bound=bool(key.networks))


def _read_response(response: httpx.Response, took: str, *, is_bound: bool) -> KeyTest:
    body = _read_json(response)
    if not response.is_success:
        return _failed(_reason_of(response, body, is_bound=is_bound), took)
    finish = response.headers.get("X-Caret-Finish-Reason", "stop")
    if finish in ("shed", "budget_exceeded", "error"):
        return _failed(str(_OWN_FINISHES[finish]), took)
    return KeyTest(True, gettext("The key works."), took, _completion_of(body))


def _reason_of(response: httpx.Response, body: dict[str, object], *, is_bound: bool) -> str:
    error = body.get("error")
    details = error if isinstance(error, dict) else {}
    code = str(details.get("code", ""))
    if code == "invalid_api_key" and is_bound:
        return str(_OTHER_NETWORK)
    message = _OWN_ERRORS.get(code) or ERRORS.get(code)
    return str(message or details.get("message") or f"HTTP {response.status_code}")


def _read_json(response: httpx.Response) -> dict[str, object]:
    try:
        body = response.json()
    except (json.JSONDecodeError, UnicodeDecodeError):
        return {}
    return body if isinstance(body, dict) else {}


def _completion_of(body: dict[str, object]) -> str:
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else {}
    if not isinstance(first, dict):
        return ""
    message = first.get("message")
    return str(first.get("text") or (message.get("content") if isinstance(message, dict) else ""))


def _failed(message: str, took: str = "") -> KeyTest:
    return KeyTest(is_good=False, message=message, took=took)


def _took_since(began_s: float) -> str:
    return format_milliseconds((time.perf_counter() - began_s) * 1_000)
