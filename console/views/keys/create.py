"""Creation of an API key, whose text is shown only once."""

from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from caret.contracts.api_key import KeyKind
from caret.foundation.ids import UserId
from console.error_messages import translate_error
from console.layout.form_tokens import consume_form_token, issue_form_token
from console.layout.htmx import render_page
from console.layout.permission_required import permission_required
from console.sign_in.current_member import CurrentMember, member_required
from console.views.keys.created import show_once
from console.views.keys.forms import NewKeyForm
from tenants.base.errors import Conflict, Forbidden, InvalidValue
from tenants.base.pagination import MAX_PAGE
from tenants.base.permissions import Permission
from tenants.identity.api_keys.operations import CreatedKey, create_key
from tenants.identity.api_keys.validation import KeyRequest
from tenants.identity.members.search import MemberFilter, find_member_by_email, search_members
from tenants.policy.queries import get_policy

_FORM: Final = "new-key"
_FIELDS: Final = {"owner_id": "owner", "expires_at": "lifetime", "scopes": "modes"}


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.CREATE_KEYS)
def new_key(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    max_days = get_policy(actor=member.actor).policy.max_key_lifetime_days
    if request.method == "GET":
        return _render_page(request, member, _build_form(request, member, max_days))
    if not consume_form_token(request, _FORM):
        messages.warning(
            request, gettext("You already submitted this form. We did not create a second key.")
        )
        return redirect("console:keys")
    form = _build_form(request, member, max_days)
    created = _create_key(member, form)
    if created is None:
        return _render_page(request, member, form, status=400)
    return show_once(request, member, created)


def _build_form(request: HttpRequest, member: CurrentMember, max_days: int | None) -> NewKeyForm:
    form = NewKeyForm(request.POST or None, initial={"owner": member.email})
    form.limit_lifetime(max_days)
    return form


def _render_page(
    request: HttpRequest, member: CurrentMember, form: NewKeyForm, status: int = 200
) -> HttpResponse:
    found = search_members(actor=member.actor, wanted=MemberFilter(), limit=MAX_PAGE, cursor=None)
    context = {
        "form": form,
        "form_token": issue_form_token(request, _FORM),
        "owners": [row.email for row in found.rows],
    }
    return render_page(request, member, "console/keys/new.html", context, status=status)


def _create_key(member: CurrentMember, form: NewKeyForm) -> CreatedKey | None:
    """Create the key. Return None if the form has an error."""
    now = timezone.now()
    if not form.is_valid():
        return None
    try:
        kind = KeyKind(form.cleaned_data["kind"])
        new = KeyRequest(
            kind=kind,
            owner_id=None if kind is KeyKind.SERVICE else _owner_of(member, form),
            name=form.cleaned_data["name"],
            expires_at=form.expires_at(now),
            scopes=form.wanted_scopes(),
            networks=tuple(form.cleaned_data["networks"].split()),
        )
        return create_key(actor=member.actor, new=new, now=now)
    except InvalidValue as error:
        form.add_error(_FIELDS.get(error.field, error.field), translate_error(error))
    except (Conflict, Forbidden) as error:
        form.add_error(None, translate_error(error))
    return None


def _owner_of(member: CurrentMember, form: NewKeyForm) -> UserId:
    """Return the key's owner. Raises InvalidValue."""
    owner = find_member_by_email(actor=member.actor, email=form.cleaned_data["owner"])
    if owner is None:
        raise InvalidValue("owner", "No member has this e-mail address.")
    return owner.user_id
