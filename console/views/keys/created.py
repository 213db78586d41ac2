"""The page that shows the text of a new API key, and editor settings that contain the text."""

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from console.layout.htmx import render_page
from console.sign_in.current_member import CurrentMember
from console.texts.editor_settings import list_editor_settings
from console.views.keys.presenters import key_line
from console.views.keys.try_key import can_try
from tenants.identity.api_keys.operations import CreatedKey
from tenants.identity.api_keys.scopes import list_modes


def show_once(
    request: HttpRequest,
    member: CurrentMember,
    created_key: CreatedKey,
    *,
    is_new: bool = True,
    is_own: bool = False,
) -> HttpResponse:
    """Show the text of the key. It is shown only here, because it is not stored.

    `is_new` is False after a rotation. `is_own` is True for a key from the page My keys.
    """
    modes = list_modes(created_key.key.scopes)
    context = {
        "key_text": created_key.text,
        "line": key_line(member.actor, created_key.key),
        "is_new": is_new,
        "is_own": is_own,
        "list_url": reverse("console:my-keys" if is_own else "console:keys"),
        "editors": list_editor_settings(created_key.text, modes),
        "can_try": can_try(modes),
    }
    return render_page(request, member, "console/keys/created.html", context)
