"""Legal holds. Purges keep the data that a hold covers until the hold is released."""

from datetime import date, datetime, time, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_http_methods

from caret.foundation.ids import UserId
from console.layout.htmx import render_page
from console.layout.lists.list_page import CsvFile, ListPage, ListQuery
from console.layout.permission_required import permission_required
from console.layout.step_up import step_up_required_to_save
from console.layout.toasts import toast
from console.sign_in.current_member import CurrentMember, member_required
from console.texts.error_messages import translate_error
from console.views.policies.form_fields import add_refusal
from console.views.policies.review.review import ReasonForm
from console.views.retention.list import tabs
from tenants.base.errors import Conflict, InvalidValue, NotFound
from tenants.base.pagination import Page, map_page
from tenants.base.permissions import Permission
from tenants.compliance.data_subjects.queries import find_user_id
from tenants.identity.members.queries import find_emails
from tenants.privacy.retention.operations import MAX_NAME_CHARS, NewHold, place_hold, release_hold
from tenants.privacy.retention.queries import HoldView, find_hold, list_holds, preview_hold

_MAX_EMAIL_CHARS: Final = 254  # the longest address that RFC 5321 allows
_DATE_INPUT: Final = {"type": "date"}  # HTML attributes


class HoldForm(ReasonForm):
    name = forms.CharField(
        label=_("Matter"),
        max_length=MAX_NAME_CHARS,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    user_email = forms.CharField(
        label=_("Member's e-mail address"),
        help_text=_("Of a current or former member. Leave empty to hold the data of all users."),
        required=False,
        max_length=_MAX_EMAIL_CHARS,
        widget=forms.EmailInput(attrs={"autocomplete": "off"}),
    )
    since = forms.DateField(
        label=_("Data from"), required=False, widget=forms.DateInput(attrs=_DATE_INPUT)
    )
    until = forms.DateField(
        label=_("Data to (inclusive)"),
        required=False,
        widget=forms.DateInput(attrs=_DATE_INPUT),
    )
    field_order = ("name", "user_email", "since", "until", "reason")


class _HoldRow(NamedTuple):
    hold: HoldView
    subject: str  # the text that says whose data the hold covers


def _find_holds(query: ListQuery) -> Page[_HoldRow]:
    page = list_holds(actor=query.actor, limit=query.limit, cursor=query.cursor)
    emails = _find_emails_by_user(query.member, page.rows)
    return map_page(page, lambda hold: _HoldRow(hold, _describe_subject(hold, emails)))


_HOLDS: Final = ListPage(
    template="console/retention/legal_holds.html",
    query=_find_holds,
    context=lambda query, _page: {
        "tabs": tabs(query.request),
        "may_edit": query.actor.has_permission(Permission.WRITE_LEGAL_HOLDS),
    },
    csv=CsvFile(
        "holds",
        {
            "matter": lambda row: row.hold.name,
            "reason": lambda row: row.hold.reason,
            "user": lambda row: row.subject,
            "since": lambda row: row.hold.since,
            "until": lambda row: row.hold.until,
            "created_at": lambda row: row.hold.created_at,
            "released_at": lambda row: row.hold.released_at,
        },
    ),
)


@require_GET
@member_required
def holds(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    return _HOLDS.render(request, member)


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.WRITE_LEGAL_HOLDS)
def create_hold(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    """Show the form. A POST shows the effect of the hold; with `step=place`, it places the hold."""
    form = HoldForm(request.POST if request.method == "POST" else None)
    effects = None
    if form.is_valid():
        try:
            new, now = _to_new_hold(form), timezone.now()
            if request.POST.get("step") == "place":
                place_hold(actor=member.actor, new=new, now=now)
                toast(request, gettext("Hold created. Data under it is not purged."))
                return redirect("console:retention-holds")
            effects = preview_hold(actor=member.actor, new=new, now=now)
        except InvalidValue as error:
            add_refusal(form, error)
    context = {
        "form": form,
        "effects": effects,
        # Records that a purge would delete now without the hold.
        "num_saved": sum(effect.saved for effect in effects or ()),
    }
    status = 400 if form.errors else 200
    return render_page(
        request, member, "console/retention/create_legal_hold.html", context, status=status
    )


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.WRITE_LEGAL_HOLDS)
@step_up_required_to_save
def release(request: HttpRequest, member: CurrentMember, hold_id: UUID) -> HttpResponse:
    """Release the hold. The next purge then deletes expired data that no other hold covers."""
    hold = find_hold(actor=member.actor, hold_id=hold_id)
    form = ReasonForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            reason = form.cleaned_data["reason"]
            release_hold(actor=member.actor, hold_id=hold_id, reason=reason, now=timezone.now())
        except (Conflict, InvalidValue) as error:
            form.add_error(None, translate_error(error))
        else:
            toast(request, gettext("Hold released. The next purge can delete its data."))
            return redirect("console:retention-holds")
    context: dict[str, Any] = {
        "form": form,
        "hold": hold,
        "subject": _describe_subject(hold, _find_emails_by_user(member, [hold])),
    }
    status = 400 if form.errors else 200
    return render_page(
        request, member, "console/retention/release_legal_hold.html", context, status=status
    )


def _to_new_hold(form: HoldForm) -> NewHold:
    """Return the new hold of the form. Raises InvalidValue."""
    cleaned = form.cleaned_data
    return NewHold(
        name=cleaned["name"],
        reason=cleaned["reason"],
        user_id=_find_user_id(cleaned["user_email"]),
        since=_start_of(cleaned["since"]),
        until=None if cleaned["until"] is None else _start_of(_next_day(cleaned["until"])),
    )


def _find_user_id(email: str) -> UUID | None:
    """Return the ID of the user with this e-mail address; None for "", which means all users.

    The user may belong to any tenant. Raises InvalidValue if no user has the address. The message
    is the one that `place_hold` and `preview_hold` use for users of other tenants, so it does not
    tell whether an account exists.
    """
    if not email:
        return None
    try:
        return UUID(find_user_id(email))
    except NotFound as error:
        raise InvalidValue("user_id", "This user is not a member of the tenant.") from error


def _next_day(day: date) -> date:
    """Return the day after `day`. Raises InvalidValue after the last possible date."""
    try:
        return day + timedelta(days=1)
    except OverflowError as error:
        raise InvalidValue("until", "This day does not exist.") from error


def _start_of(day: date | None) -> datetime | None:
    """Return the start of the day in the user's time zone; None if there is no day."""
    return None if day is None else timezone.make_aware(datetime.combine(day, time.min))


def _find_emails_by_user(member: CurrentMember, rows: list[HoldView]) -> dict[str, str]:
    """Return the e-mail addresses by user ID; {} if the actor may not see members."""
    if not member.actor.has_permission(Permission.READ_MEMBERS):
        return {}
    user_ids = {UserId(str(row.user_id)) for row in rows if row.user_id is not None}
    emails = find_emails(actor=member.actor, user_ids=user_ids)
    return {str(user_id): email for user_id, email in emails.items()}


def _describe_subject(hold: HoldView, emails: dict[str, str]) -> str:
    """Return "All users", or the user's e-mail address. Without an address, return the user's ID.

    `emails` are the addresses by user ID.
    """
    if hold.user_id is None:
        return gettext("All users")
    return emails.get(str(hold.user_id), str(hold.user_id))
