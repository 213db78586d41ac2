"""Consent of the members, consent receipts, withdrawals and erasures."""

from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from console.layout.htmx import render_page
from console.layout.lists.csv_response import collect_rows
from console.layout.lists.pagination import page_links, wants_csv
from console.layout.permission_required import permission_required
from console.layout.tabs import Tab, tabs_of
from console.sign_in.current_member import CurrentMember, member_required
from console.views.privacy.csv_exports import (
    erasures_file,
    members_file,
    receipts_file,
    withdrawals_file,
)
from tenants.base.pagination import MAX_PAGE, Page
from tenants.base.permissions import Permission
from tenants.compliance.data_subjects.queries import ErasureView, list_erasures
from tenants.identity.members.queries import page_of_members
from tenants.privacy.consent.consent import NO_CONSENT
from tenants.privacy.consent.consent_texts import (
    TENANT_CONSENT_TEXT,
    USER_WORDINGS,
    get_consent_text,
)
from tenants.privacy.consent.queries import (
    ContentErasureView,
    Receipt,
    consents_of,
    get_consent_overview,
    list_content_erasures,
    list_receipts,
)
from tenants.security.authorization.directory import MemberRow

_ROWS: Final = 25
REASONS: Final[dict[str, Promise]] = {
    "withdrawn": _("Consent withdrawn"),
    "no_consent": _("No consent"),
    "retention": _("Retention period ended"),
    "erased": _("User or tenant erased"),
    "unfinished": _("Never stored"),
}


def tabs(request: HttpRequest, member: CurrentMember) -> list[Tab]:
    may = member.actor.has_permission
    pages = [("privacy", gettext("Consent"))]
    if may(Permission.READ_MEMBERS):
        pages.append(("privacy-members", gettext("By member")))
    pages.append(("privacy-receipts", gettext("Consent receipts")))
    pages.append(("privacy-withdrawals", gettext("Withdrawals")))
    if may(Permission.READ_RETENTION):
        pages.append(("privacy-erasures", gettext("Erasures")))
    if may(Permission.EXPORT_DATA_SUBJECTS) or may(Permission.ERASE_DATA_SUBJECTS):
        pages.append(("privacy-people", gettext("Data subject requests")))
    return tabs_of(request, pages)


@require_GET
@member_required
def overview(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    context = {
        "tabs": tabs(request, member),
        "found": get_consent_overview(actor=member.actor),
        "wordings": [
            get_consent_text(TENANT_CONSENT_TEXT),
            *map(get_consent_text, USER_WORDINGS.values()),
        ],
        "may_change": member.actor.has_permission(Permission.WRITE_POLICY),
        "may_export": member.actor.has_permission(Permission.EXPORT),
    }
    return render_page(request, member, "console/privacy/overview.html", context)


@require_GET
@member_required
@permission_required(Permission.READ_CONSENT)
def members(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    actor = member.actor

    def page_after(cursor: str | None, limit: int = MAX_PAGE) -> Page[MemberRow]:
        return page_of_members(actor=actor, limit=limit, cursor=cursor)

    if wants_csv(request):
        return members_file(actor, collect_rows(page_after))
    page = page_after(request.GET.get("cursor"), _ROWS)
    consents = consents_of(actor=actor, user_ids=[row.user_id for row in page.rows])
    rows = [(row, consents.get(row.user_id, NO_CONSENT)) for row in page.rows]
    return _listed(request, member, "members", rows, page)


@require_GET
@member_required
@permission_required(Permission.READ_CONSENT)
def receipts(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    def page_after(cursor: str | None, limit: int = MAX_PAGE) -> Page[Receipt]:
        return list_receipts(actor=member.actor, limit=limit, cursor=cursor)

    if wants_csv(request):
        return receipts_file(collect_rows(page_after))
    page = page_after(request.GET.get("cursor"), _ROWS)
    return _listed(request, member, "receipts", page.rows, page)


@require_GET
@member_required
def withdrawals(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    def page_after(cursor: str | None, limit: int = MAX_PAGE) -> Page[ContentErasureView]:
        return list_content_erasures(actor=member.actor, limit=limit, cursor=cursor)

    if wants_csv(request):
        return withdrawals_file(collect_rows(page_after))
    page = page_after(request.GET.get("cursor"), _ROWS)
    rows = [(REASONS.get(row.reason, row.reason), row) for row in page.rows]
    return _listed(request, member, "withdrawals", rows, page)


@require_GET
@member_required
@permission_required(Permission.READ_CONSENT)
def erasures(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    def page_after(cursor: str | None, limit: int = MAX_PAGE) -> Page[ErasureView]:
        return list_erasures(actor=member.actor, limit=limit, cursor=cursor)

    if wants_csv(request):
        return erasures_file(collect_rows(page_after))
    page = page_after(request.GET.get("cursor"), _ROWS)
    rows = [(row, sum(row.rows.values())) for row in page.rows]
    return _listed(request, member, "erasures", rows, page)


def _listed(
    request: HttpRequest, member: CurrentMember, name: str, rows: list[Any], page: Page[Any]
) -> HttpResponse:
    context = {
        "tabs": tabs(request, member),
        "rows": rows,
        "turning": page_links(request, page, has_file=True),
    }
    return render_page(request, member, f"console/privacy/{name}.html", context)
