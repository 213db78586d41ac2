"""Who has agreed to what, by which receipts, and what the end of it has erased."""

from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from console.member import Member, for_members
from console.shell.allowed import allowed
from console.shell.lists import turning
from console.shell.parts import show
from console.shell.tabs import Tab, tabs_of
from tenants.data_subjects.queries import list_erasures
from tenants.members.permissions import Permission
from tenants.members.queries import page_of_members
from tenants.telemetry.consent import NO_CONSENT
from tenants.telemetry.queries import (
    consents_of,
    get_consent_overview,
    list_content_erasures,
    list_receipts,
)
from tenants.telemetry.wordings import TENANT_WORDING, USER_WORDINGS, wording

_ROWS: Final = 25
REASONS: Final[dict[str, Promise]] = {
    "withdrawn": _("Consent withdrawn"),
    "no_consent": _("No consent"),
    "retention": _("Its days were over"),
    "erased": _("Person or tenant erased"),
    "unfinished": _("Never stored"),
}


def tabs(request: HttpRequest, member: Member) -> list[Tab]:
    may = member.actor.may
    pages = [("privacy", gettext("Consent"))]
    if may(Permission.READ_MEMBERS):
        pages.append(("privacy-members", gettext("By member")))
    pages.append(("privacy-receipts", gettext("Receipts")))
    pages.append(("privacy-withdrawals", gettext("Withdrawals")))
    if may(Permission.READ_RETENTION):
        pages.append(("privacy-erasures", gettext("Erasures")))
    if may(Permission.EXPORT_SUBJECTS) or may(Permission.ERASE_SUBJECTS):
        pages.append(("privacy-people", gettext("Requests of people")))
    return tabs_of(request, pages)


@require_GET
@for_members
def overview(request: HttpRequest, member: Member) -> HttpResponse:
    context = {
        "tabs": tabs(request, member),
        "found": get_consent_overview(actor=member.actor),
        "wordings": [wording(TENANT_WORDING), *map(wording, USER_WORDINGS.values())],
        "may_change": member.actor.may(Permission.WRITE_POLICY),
        "may_export": member.actor.may(Permission.EXPORT),
    }
    return show(request, member, "console/privacy/overview.html", context)


@require_GET
@for_members
@allowed(Permission.READ_CONSENT)
def members(request: HttpRequest, member: Member) -> HttpResponse:
    actor = member.actor
    page = page_of_members(actor=actor, limit=_ROWS, cursor=request.GET.get("cursor"))
    consents = consents_of(actor=actor, user_ids=[row.user_id for row in page.rows])
    rows = [(row, consents.get(row.user_id, NO_CONSENT)) for row in page.rows]
    return _listed(request, member, "members", {"rows": rows, "turning": turning(request, page)})


@require_GET
@for_members
@allowed(Permission.READ_CONSENT)
def receipts(request: HttpRequest, member: Member) -> HttpResponse:
    cursor = request.GET.get("cursor")
    page = list_receipts(actor=member.actor, limit=_ROWS, cursor=cursor)
    context = {"rows": page.rows, "turning": turning(request, page)}
    return _listed(request, member, "receipts", context)


@require_GET
@for_members
def withdrawals(request: HttpRequest, member: Member) -> HttpResponse:
    cursor = request.GET.get("cursor")
    page = list_content_erasures(actor=member.actor, limit=_ROWS, cursor=cursor)
    rows = [(REASONS.get(row.reason, row.reason), row) for row in page.rows]
    return _listed(
        request, member, "withdrawals", {"rows": rows, "turning": turning(request, page)}
    )


@require_GET
@for_members
@allowed(Permission.READ_CONSENT)
def erasures(request: HttpRequest, member: Member) -> HttpResponse:
    cursor = request.GET.get("cursor")
    page = list_erasures(actor=member.actor, limit=_ROWS, cursor=cursor)
    rows = [(row, sum(row.rows.values())) for row in page.rows]
    return _listed(request, member, "erasures", {"rows": rows, "turning": turning(request, page)})


def _listed(
    request: HttpRequest, member: Member, name: str, context: dict[str, Any]
) -> HttpResponse:
    page = f"console/privacy/{name}.html"
    return show(request, member, page, {"tabs": tabs(request, member), **context})
