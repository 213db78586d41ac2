"""The policy in force, its editor, and its versions."""

from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods

from console.layout.htmx import render_page
from console.layout.lists.list_page import CsvFile, ListPage
from console.layout.permission_required import permission_required
from console.layout.tabs import Tab, tabs_of
from console.sign_in.current_member import CurrentMember, member_required
from console.views.policies.diff import changes_between, values_of
from console.views.policies.form_fields import add_refusal, whole_number
from console.views.policies.forms import PolicyForm, groups_of, initial_of, policy_of
from console.views.policies.policy_draft import PolicyDraft, read_draft
from console.views.policies.review import shown as show_review
from tenants.base.errors import InvalidValue
from tenants.base.permissions import Permission
from tenants.policy.queries import find_version, get_policy, page_of_versions
from tenants.privacy.consent.consent_texts import TENANT_CONSENT_TEXT, get_consent_text


def tabs(request: HttpRequest, member: CurrentMember) -> list[Tab]:
    pages = [("policies", gettext("Current"))]
    if member.actor.has_permission(Permission.READ_OVERRIDES):
        pages.append(("policies-layers", gettext("Overrides")))
    pages += [
        ("policies-effective", gettext("Effective policy")),
        ("policies-explain", gettext("Check a file")),
        ("policies-history", gettext("History")),
    ]
    return tabs_of(request, pages)


@require_GET
@member_required
def in_force(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    held = get_policy(actor=member.actor)
    context = {
        "tabs": tabs(request, member),
        "held": held,
        "groups": values_of(held.policy),
        "may_edit": member.actor.has_permission(Permission.WRITE_POLICY),
    }
    return render_page(request, member, "console/policies/in_force.html", context)


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.WRITE_POLICY)
def edit(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    """Edit the policy in force, or continue with a draft that returns from its review."""
    if request.method == "GET":
        held = get_policy(actor=member.actor)
        draft = PolicyDraft(held.policy, held.version)
        return _render_edit_page(
            request, member, draft, PolicyForm(initial=initial_of(draft.policy))
        )
    draft = read_draft(request.POST)
    if request.POST.get("step") == "edit":
        return _render_edit_page(
            request, member, draft, PolicyForm(initial=initial_of(draft.policy))
        )
    form = PolicyForm(request.POST)
    if not form.is_valid():
        return _render_edit_page(request, member, draft, form, status=400)
    try:
        policy = policy_of(form.cleaned_data, base=draft.policy)
    except InvalidValue as error:
        add_refusal(form, error)
        return _render_edit_page(request, member, draft, form, status=400)
    return show_review(request, member, PolicyDraft(policy, draft.replaces))


_HISTORY: Final = ListPage(
    template="console/policies/history.html",
    fragment="console/policies/_versions.html",
    query=lambda asked: page_of_versions(actor=asked.actor, limit=asked.limit, cursor=asked.cursor),
    context=lambda asked, _: {
        "tabs": tabs(asked.request, asked.member),
        "is_first": asked.cursor is None,
    },
    csv=CsvFile(
        "policy-versions",
        {
            "version": lambda found: found.version,
            "created_at": lambda found: found.created_at,
            "author": lambda found: found.author_email or found.author_key,
            "reason": lambda found: found.reason,
        },
    ),
)


@require_GET
@member_required
def history(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    return _HISTORY.render(request, member)


@require_GET
@member_required
def version(request: HttpRequest, member: CurrentMember, version: int) -> HttpResponse:
    """Show a version and its changes from the one before, or from the version in `with`."""
    found = find_version(actor=member.actor, version=version)
    other = whole_number(request.GET.get("with", ""))
    other = version - 1 if other is None else other
    before = find_version(actor=member.actor, version=other) if other >= 1 else None
    held = get_policy(actor=member.actor)
    is_held = held.version == version
    context: dict[str, Any] = {
        "found": found,
        "held": held,
        "before": before,
        "changes": [] if before is None else changes_between(before.policy, found.policy),
        "groups": values_of(found.policy),
        "is_held": is_held,
        "may_go_back": member.actor.has_permission(Permission.WRITE_POLICY) and not is_held,
    }
    return render_page(request, member, "console/policies/version.html", context)


def _render_edit_page(
    request: HttpRequest,
    member: CurrentMember,
    draft: PolicyDraft,
    form: PolicyForm,
    status: int = 200,
) -> HttpResponse:
    context = {
        "draft": draft,
        "form": form,
        "groups": groups_of(form),
        "tenant_wording": get_consent_text(TENANT_CONSENT_TEXT),
    }
    return render_page(request, member, "console/policies/edit.html", context, status=status)
