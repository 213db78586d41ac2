"""The consent page, and the lists of members' consent, receipts, withdrawals and erasures.

The list of withdrawals contains all erasures of captured content, also those whose reason is not a
withdrawal. The list of erasures contains the erasures of all data of a user or of the tenant.
"""

from typing import Any, Final, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.views.decorators.http import require_GET

from console.layout.htmx import render_page
from console.layout.lists.list_page import CsvFile, ListPage, ListQuery
from console.layout.permission_required import permission_required
from console.layout.tabs import Tab, tabs_of
from console.sign_in.current_member import CurrentMember, member_required
from console.views.privacy.presenters import CONTENT_ERASURE_REASONS, RECEIPTS_FILE
from tenants.base.pagination import Page, map_page
from tenants.base.permissions import Permission
from tenants.compliance.data_subjects.queries import ErasureView, list_erasures
from tenants.identity.members.queries import read_page_of_members
from tenants.privacy.consent.consent import NO_CONSENT, UserConsent
from tenants.privacy.consent.consent_texts import (
    TENANT_CONSENT_VERSION,
    USER_CONSENT_VERSIONS,
    get_consent_text,
)
from tenants.privacy.consent.queries import (
    ContentErasureView,
    find_effective_consents,
    get_consent_overview,
    list_content_erasures,
    list_receipts,
)
from tenants.security.authorization.directory import MemberRow


class _MemberConsentRow(NamedTuple):
    member: MemberRow
    consent: UserConsent  # the member's effective consent


class _WithdrawalRow(NamedTuple):
    reason_text: str | Promise
    erasure: ContentErasureView


class _ErasureRow(NamedTuple):
    erasure: ErasureView
    num_rows: int  # rows erased so far


def tabs(request: HttpRequest, member: CurrentMember) -> list[Tab]:
    """Return the tabs of the privacy pages that the user may open.

    All roles with access to any of these pages have READ_CONSENT. So tabs that need no other
    permission are always shown.
    """
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
@permission_required(Permission.READ_CONSENT)
def overview(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    context = {
        "tabs": tabs(request, member),
        "overview": get_consent_overview(actor=member.actor),
        "consent_texts": [
            get_consent_text(TENANT_CONSENT_VERSION),
            *map(get_consent_text, USER_CONSENT_VERSIONS.values()),
        ],
        "may_change": member.actor.has_permission(Permission.WRITE_POLICY),
        "may_export": member.actor.has_permission(Permission.EXPORT),
    }
    return render_page(request, member, "console/privacy/list.html", context)


def _build_context(query: ListQuery, _page: Page[Any]) -> dict[str, Any]:
    return {"tabs": tabs(query.request, query.member)}


def _find_members(query: ListQuery) -> Page[_MemberConsentRow]:
    page = read_page_of_members(actor=query.actor, limit=query.limit, cursor=query.cursor)
    consents = find_effective_consents(
        actor=query.actor, user_ids=[row.user_id for row in page.rows]
    )
    return map_page(page, lambda row: _MemberConsentRow(row, consents.get(row.user_id, NO_CONSENT)))


_MEMBERS: Final = ListPage(
    template="console/privacy/members.html",
    query=_find_members,
    context=_build_context,
    csv=CsvFile(
        "consent",
        {
            "email": lambda row: row.member.email,
            "name": lambda row: row.member.name,
            "content_capture": lambda row: row.consent.content_capture,
            "training": lambda row: row.consent.training,
            "member_since": lambda row: row.member.created_at,
        },
    ),
)


@require_GET
@member_required
@permission_required(Permission.READ_CONSENT)
def members(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    """Show the consent of each member. `_find_members` also requires READ_MEMBERS."""
    return _MEMBERS.render(request, member)


_RECEIPTS: Final = ListPage(
    template="console/privacy/receipts.html",
    query=lambda query: list_receipts(actor=query.actor, limit=query.limit, cursor=query.cursor),
    context=_build_context,
    csv=RECEIPTS_FILE,
)


@require_GET
@member_required
@permission_required(Permission.READ_CONSENT)
def receipts(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    return _RECEIPTS.render(request, member)


def _find_withdrawals(query: ListQuery) -> Page[_WithdrawalRow]:
    page = list_content_erasures(actor=query.actor, limit=query.limit, cursor=query.cursor)
    return map_page(
        page,
        lambda erasure: _WithdrawalRow(
            CONTENT_ERASURE_REASONS.get(erasure.reason, erasure.reason), erasure
        ),
    )


_WITHDRAWALS: Final = ListPage(
    template="console/privacy/withdrawals.html",
    query=_find_withdrawals,
    context=_build_context,
    csv=CsvFile(
        "withdrawals",
        {
            "user": lambda row: row.erasure.user_email or row.erasure.user_id,
            "reason": lambda row: row.erasure.reason,
            "items": lambda row: row.erasure.num_items,
            "bytes": lambda row: row.erasure.num_bytes,
            "destroyed_encryption_keys": lambda row: row.erasure.num_keys,
            "unreadable_since": lambda row: row.erasure.requested_at,
            "deleted_at": lambda row: row.erasure.finished_at,
        },
    ),
)


@require_GET
@member_required
@permission_required(Permission.READ_CONSENT)
def withdrawals(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    return _WITHDRAWALS.render(request, member)


def _find_erasures(query: ListQuery) -> Page[_ErasureRow]:
    page = list_erasures(actor=query.actor, limit=query.limit, cursor=query.cursor)
    return map_page(page, lambda erasure: _ErasureRow(erasure, num_rows=sum(erasure.rows.values())))


_ERASURES: Final = ListPage(
    template="console/privacy/erasures.html",
    query=_find_erasures,
    context=_build_context,
    csv=CsvFile(
        "erasures",
        {
            "user": lambda row: "" if row.erasure.user_id is None else str(row.erasure.user_id),
            "reason": lambda row: row.erasure.reason,
            "rows": lambda row: row.num_rows,
            "requested_at": lambda row: row.erasure.requested_at,
            "erased_at": lambda row: row.erasure.finished_at,
        },
    ),
)


@require_GET
@member_required
@permission_required(Permission.READ_RETENTION)
def erasures(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    return _ERASURES.render(request, member)
