"""The history of the policy, and the page of one version."""

from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from console.layout.htmx import render_page
from console.layout.lists.list_page import CsvFile, ListPage
from console.sign_in.current_member import CurrentMember, member_required
from console.views.policies.diff import changes_between, list_value_groups
from console.views.policies.form_fields import parse_whole_number
from console.views.policies.tabs import tabs
from tenants.base.permissions import Permission
from tenants.policy.queries import find_version, get_policy, read_page_of_versions

_HISTORY: Final = ListPage(
    template="console/policies/versions.html",
    fragment="console/policies/_versions.html",
    query=lambda query: read_page_of_versions(
        actor=query.actor, limit=query.limit, cursor=query.cursor
    ),
    context=lambda query, _page: {
        "tabs": tabs(query.request, query.member),
        "is_first_page": query.cursor is None,
    },
    csv=CsvFile(
        "policy-versions",
        {
            "version": lambda policy: policy.version,
            "created_at": lambda policy: policy.created_at,
            "author": lambda policy: policy.author_email or policy.author_key,
            "reason": lambda policy: policy.reason,
        },
    ),
)


@require_GET
@member_required
def show_history(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    return _HISTORY.render(request, member)


@require_GET
@member_required
def show_version(request: HttpRequest, member: CurrentMember, version: int) -> HttpResponse:
    """Show a version, and how it differs from the previous version.

    The query parameter `with` names another version to compare with.
    """
    shown_version = find_version(actor=member.actor, version=version)
    other_version = parse_whole_number(request.GET.get("with", ""))
    other_version = version - 1 if other_version is None else other_version
    before = find_version(actor=member.actor, version=other_version) if other_version >= 1 else None
    current = get_policy(actor=member.actor)
    is_current = current.version == version
    context: dict[str, Any] = {
        "shown_version": shown_version,
        "current": current,
        "before": before,
        "changes": [] if before is None else changes_between(before.policy, shown_version.policy),
        "value_groups": list_value_groups(shown_version.policy),
        "is_in_force": is_current,
        "can_restore": member.actor.has_permission(Permission.WRITE_POLICY) and not is_current,
    }
    return render_page(request, member, "console/policies/version.html", context)
