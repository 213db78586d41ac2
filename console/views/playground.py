"""The playground: an editor on a page, with the gateway's suggestions and figures of each request.

The page's script sends requests to the gateway like an editor, with a separate key. Only the
response to `start` contains the key: no page, URL, browser storage or log does.
"""

import secrets
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit

import redis
from django.conf import settings
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from console.layout.content_security_policy import policy_with
from console.layout.permission_required import permission_required
from console.limits.throttling import WINDOW_S, allow_playground_start
from console.sign_in.current_member import CurrentMember, member_required
from console.texts.error_messages import REDIS_UNAVAILABLE, translate_error
from console.texts.playground_texts import COLUMNS, TEXTS
from tenants.base.errors import DomainError
from tenants.base.permissions import Permission
from tenants.identity.api_keys.operations import CreatedKey
from tenants.identity.api_keys.playground import create_playground_key, end_playground_key

_STREAM_PATH: Final = "/v1/stream"
_CURL: Final = """\
curl {url}/v1/completions \\
  -H "Authorization: Bearer $CARET_API_KEY" -H "Content-Type: application/json" \\
  -d '{{"prompt": "def mean(values):\\n    return ", "suffix": "\\n", "max_tokens": 32}}'"""
# The languages to choose from: the gateway's language identifiers and display names.
LANGUAGES: Final = {
    "python": "Python",
    "javascript": "JavaScript",
    "typescript": "TypeScript",
    "go": "Go",
    "rust": "Rust",
    "java": "Java",
    "cpp": "C++",
    "sql": "SQL",
    "html": "HTML",
    "css": "CSS",
    "json": "JSON",
    "yaml": "YAML",
}


@require_GET
@member_required
@permission_required(Permission.USE_PLAYGROUND)
def playground(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    nonce, url = secrets.token_urlsafe(16), stream_url(settings.GATEWAY_URL)
    context = {
        "member": member,
        "nonce": nonce,
        "stream_url": url,
        "curl": _CURL.format(url=settings.GATEWAY_URL),
        "languages": LANGUAGES,
        "columns": COLUMNS,
        "texts": TEXTS,
    }
    response = render(request, "console/playground.html", context)
    # CodeMirror adds a style element. The nonce allows it for this response only.
    response["Content-Security-Policy"] = policy_with(
        style_nonce=nonce, connects_to=_origin_of(url)
    )
    return response


@require_POST
@member_required
@permission_required(Permission.USE_PLAYGROUND)
def start(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    """Create the playground's key, and return it as JSON.

    The starts of each user are limited, because each start publishes a snapshot.
    """
    try:
        if not allow_playground_start(user_id=str(member.actor.user_id)):
            return _error_response(
                _("You started the playground too often. Wait a minute, then try again."), 429
            )
        created_key = create_playground_key(actor=member.actor, now=timezone.now())
    except redis.RedisError:
        return _error_response(_(REDIS_UNAVAILABLE), 503)
    except DomainError as error:
        return _error_response(translate_error(error), 409)
    return JsonResponse(_key_response(created_key))


@require_POST
@member_required
@permission_required(Permission.USE_PLAYGROUND)
def end(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    """End the key that was issued at `issued_at`, unless a later start has replaced it."""
    issued_at = _parse_time(request.POST.get("issued_at", ""))
    end_playground_key(actor=member.actor, issued_at=issued_at, now=timezone.now())
    return HttpResponse(status=204)


def stream_url(gateway_url: str) -> str:
    """Return the WebSocket URL of the gateway's stream: http becomes ws, https becomes wss."""
    return gateway_url.replace("http", "ws", 1).rstrip("/") + _STREAM_PATH


def _origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _parse_time(text: str) -> datetime:
    """Return the time, which must have an offset from UTC. Raises BadRequest."""
    try:
        at = parse_datetime(text)
    except ValueError:
        at = None
    if at is None or timezone.is_naive(at):
        raise BadRequest("issued_at is not a valid time.")
    return at


def _key_response(created_key: CreatedKey) -> dict[str, str]:
    expires_at = created_key.key.expires_at
    assert expires_at is not None, "playground keys expire"
    return {
        "key": created_key.text,
        "issued_at": created_key.key.issued_at.isoformat(),
        "expires_at": expires_at.isoformat(),
    }


def _error_response(message: str, status: int) -> HttpResponse:
    headers = {"Retry-After": str(WINDOW_S)} if status == 429 else {}
    return JsonResponse({"message": message}, status=status, headers=headers)
