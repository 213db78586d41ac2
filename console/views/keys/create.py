"""Making a key, which is shown once."""

from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from caret.contracts.api_key import KeyKind
from caret.foundation.ids import UserId
from console.current_member import Member, for_members
from console.error_messages import told
from console.layout.form_tokens import new_form, take_form
from console.layout.htmx import show
from console.layout.permission_required import allowed
from console.views.keys.created import show_once
from console.views.keys.forms import NewKeyForm
from tenants.base.errors import Conflict, Forbidden, Invalid
from tenants.base.pagination import MAX_PAGE
from tenants.base.permissions import Permission
from tenants.identity.api_keys.operations import CreatedKey, create_key
from tenants.identity.api_keys.validation import NewKey
from tenants.identity.members.search import WantedMembers, find_members, member_at
from tenants.policy.queries import get_policy

_FORM: Final = "new-key"
_FIELDS: Final = {"owner_id": "owner", "expires_at": "lifetime", "scopes": "modes"}


@require_http_methods(["GET", "POST"])
@for_members
@allowed(Permission.CREATE_KEYS)
def new_key(request: HttpRequest, member: Member) -> HttpResponse:
    max_days = get_policy(actor=member.actor).policy.max_key_lifetime_days
    if request.method == "GET":
        return _shown(request, member, _form(request, member, max_days))
    if not take_form(request, _FORM):
        messages.warning(request, gettext("This form was used already. No second key was made."))
        return redirect("console:keys")
    form = _form(request, member, max_days)
    created = _created(member, form)
    if created is None:
        return _shown(request, member, form, status=400)
    return show_once(request, member, created)


def _form(request: HttpRequest, member: Member, max_days: int | None) -> NewKeyForm:
    form = NewKeyForm(request.POST or None, initial={"owner": member.email})
    form.allow(max_days)
    return form


def _shown(
    request: HttpRequest, member: Member, form: NewKeyForm, status: int = 200
) -> HttpResponse:
    found = find_members(actor=member.actor, wanted=WantedMembers(), limit=MAX_PAGE, cursor=None)
    context = {
        "form": form,
        "form_token": new_form(request, _FORM),
        "owners": [row.email for row in found.rows],
    }
    return show(request, member, "console/keys/new.html", context, status=status)


def _created(member: Member, form: NewKeyForm) -> CreatedKey | None:
    """None: the form says why."""
    now = timezone.now()
    if not form.is_valid():
        return None
    try:
        kind = KeyKind(form.cleaned_data["kind"])
        new = NewKey(
            kind=kind,
            owner_id=None if kind is KeyKind.SERVICE else _owner(member, form),
            name=form.cleaned_data["name"],
            expires_at=form.expires_at(now),
            scopes=form.wanted_scopes(),
            networks=tuple(form.cleaned_data["networks"].split()),
        )
        return create_key(actor=member.actor, new=new, now=now)
    except Invalid as error:
        form.add_error(_FIELDS.get(error.field, error.field), told(error))
    except (Conflict, Forbidden) as error:
        form.add_error(None, told(error))
    return None


def _owner(member: Member, form: NewKeyForm) -> UserId:
    """Raises Invalid."""
    owner = member_at(actor=member.actor, email=form.cleaned_data["owner"])
    if owner is None:
        raise Invalid("owner", "Nobody here has this address.")
    return owner.user_id
