"""The page with an API key's text, shown once, and the editor settings that use it."""

from django.http import HttpRequest, HttpResponse

from console.layout.htmx import render_page
from console.sign_in.current_member import CurrentMember
from console.texts.editor_settings import settings_with
from console.views.keys.presenters import key_line
from tenants.identity.api_keys.operations import CreatedKey
from tenants.identity.api_keys.scopes import MODES


def show_once(
    request: HttpRequest, member: CurrentMember, created_key: CreatedKey, *, is_new: bool = True
) -> HttpResponse:
    """Show the text. `is_new` is False after a rotation."""
    completes = any(scope in MODES for scope in created_key.key.scopes)
    context = {
        "text": created_key.text,
        "line": key_line(member.actor, created_key.key),
        "is_new": is_new,
        "editors": settings_with(created_key.text) if completes else [],
    }
    return render_page(request, member, "console/keys/created.html", context)
