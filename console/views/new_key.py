"""Making a key, which is shown once."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeVar

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from caret.contracts.credential import KeyKind
from caret.foundation.ids import UserId
from console.keys_table import KIND_NAMES, key_line
from console.member import Member, for_members
from tenants.errors import Conflict, Invalid, Refused
from tenants.keys.operations import CreatedKey, create_key
from tenants.keys.wish import NewKey
from tenants.members.permissions import Permission
from tenants.members.queries import list_members

Text = TypeVar("Text", bound=str)

NEVER: Final = "never"
LIFETIMES: Final = {"30": "30 days", "90": "90 days", "365": "One year", NEVER: "Never"}
DEFAULT_LIFETIME: Final = "90"
_SESSION_FORM: Final = "new-key-form"


@dataclass(frozen=True, slots=True)
class Choice:
    value: str
    text: str
    is_chosen: bool


@require_http_methods(["GET", "POST"])
@for_members
def new_key(request: HttpRequest, member: Member) -> HttpResponse:
    if not member.actor.may(Permission.CREATE_KEYS):
        raise PermissionDenied
    if request.method == "GET":
        return _form(request, member)
    if not _take_form(request):
        messages.warning(request, "This form was used already. No second key was made.")
        return redirect("console:overview")
    try:
        created = _create(request, member)
    except (Conflict, Invalid) as error:
        return _form(request, member, error)
    return _show_once(request, member, created)


def _form(request: HttpRequest, member: Member, error: Refused | None = None) -> HttpResponse:
    token = secrets.token_urlsafe(12)
    request.session[_SESSION_FORM] = token
    owners = {row.user_id: row.email for row in list_members(tenant_id=member.actor.tenant_id)}
    context = {
        "member": member,
        "form_token": token,
        "error": error,
        "name": request.POST.get("name", ""),
        "kinds": _choices(KIND_NAMES, request.POST.get("kind", KeyKind.DEVELOPER)),
        "owners": _choices(owners, request.POST.get("owner", member.actor.user_id or "")),
        "lifetimes": _choices(LIFETIMES, request.POST.get("lifetime", DEFAULT_LIFETIME)),
    }
    return render(request, "console/new_key.html", context, status=400 if error else 200)


def _choices(texts: Mapping[Text, str], chosen: str) -> list[Choice]:
    return [Choice(value, text, value == chosen) for value, text in texts.items()]


def _take_form(request: HttpRequest) -> bool:
    """Each form makes one key: a reload of the page that shows it must not make another."""
    expected = request.session.pop(_SESSION_FORM, None)
    return expected is not None and expected == request.POST.get("form_token")


def _create(request: HttpRequest, member: Member) -> CreatedKey:
    """Raises Conflict, Invalid."""
    now = timezone.now()
    kind = _chosen(request, "kind", [known.value for known in KeyKind])
    lifetime = _chosen(request, "lifetime", list(LIFETIMES))
    new = NewKey(
        kind=KeyKind(kind),
        owner_id=None if kind == KeyKind.SERVICE else _owner(request, member),
        name=request.POST.get("name", ""),
        expires_at=None if lifetime == NEVER else now + timedelta(days=int(lifetime)),
    )
    return create_key(actor=member.actor, new=new, now=now)


def _owner(request: HttpRequest, member: Member) -> UserId:
    members = [row.user_id for row in list_members(tenant_id=member.actor.tenant_id)]
    return UserId(_chosen(request, "owner", members))


def _chosen(request: HttpRequest, field: str, values: list[str] | list[UserId]) -> str:
    value = request.POST.get(field, "")
    if value not in values:
        raise Invalid(field, f"Choose one of the values for {field}.")
    return value


def _show_once(request: HttpRequest, member: Member, created: CreatedKey) -> HttpResponse:
    context = {
        "member": member,
        "text": created.text,
        "line": key_line(created.key, can_revoke=False),
        "gateway_url": settings.GATEWAY_URL,
    }
    return render(request, "console/created_key.html", context)
