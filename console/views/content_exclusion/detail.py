"""The editor of content exclusion, with a tester that also works on unsaved text."""

from dataclasses import dataclass
from typing import Any, Final

import msgspec
from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from caret.contracts.content_exclusion import matching_globs
from console.layout.htmx import render_page
from console.layout.tabs import Tab, tabs_of
from console.sign_in.current_member import CurrentMember, member_required
from console.views.policies.form_fields import (
    AS_TYPED,
    MAX_TEXT_CHARS,
    RepositoryFileForm,
    add_refusal,
    whole_number,
)
from console.views.policies.review.policy_draft import PolicyDraft, read_draft
from console.views.policies.review.review import shown as show_review
from tenants.base.errors import InvalidValue
from tenants.base.permissions import Permission
from tenants.policy.content_exclusion_syntax import read_exclusions, write_exclusions
from tenants.policy.document import check_exclusions
from tenants.policy.queries import PolicyInForce, find_version, get_policy

_PAGE: Final = "console/content_exclusion/detail.html"
_ROWS: Final = 16


class ExclusionForm(RepositoryFileForm):
    content_exclusion = forms.CharField(
        label=_("Excluded paths"),
        help_text=_(
            "For each repository, enter its name and a colon, then one pattern per line "
            'after a dash. "*" means all repositories. Comments start with # and are not '
            "saved."
        ),
        required=False,
        max_length=MAX_TEXT_CHARS,
        widget=forms.Textarea(attrs=AS_TYPED | {"class": "mono", "rows": _ROWS}),
    )


@dataclass(frozen=True, slots=True)
class PathTest:
    repository: str
    path: str
    globs: list[tuple[str, str]]  # repository and pattern of each match; empty: not excluded


@dataclass(frozen=True, slots=True)
class ExclusionEditor:
    form: ExclusionForm
    expected_version: int  # the version that the user has seen
    tested: PathTest | None = None


def tabs(request: HttpRequest, member: CurrentMember) -> list[Tab]:
    pages = [("exclusion", gettext("Rules"))]
    if member.actor.has_permission(Permission.READ_USAGE) or member.actor.has_permission(
        Permission.READ_OWN_USAGE
    ):
        pages.append(("exclusion-denials", gettext("Blocked requests")))
    return tabs_of(request, pages)


@require_http_methods(["GET", "POST"])
@member_required
def exclusion(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    """Show or process the editor. `step`: `test`, `review`, or `edit` for a draft under review."""
    current = get_policy(actor=member.actor)
    if request.method == "GET":
        return _show_exclusion(request, member, current)
    member.actor.require(Permission.WRITE_POLICY)
    if request.POST.get("step") == "edit":
        draft = read_draft(request.POST)
        text = write_exclusions(draft.policy.content_exclusion)
        form = ExclusionForm(initial={"content_exclusion": text})
        return _render_page(request, member, current, ExclusionEditor(form, draft.expected_version))
    return _save_exclusion(request, member, current)


def _show_exclusion(
    request: HttpRequest, member: CurrentMember, current: PolicyInForce
) -> HttpResponse:
    """Show the rules in force. If the URL names a path, test it."""
    in_force = current.policy.content_exclusion
    path_form = RepositoryFileForm(request.GET)
    test_result = (
        _run_path_test(path_form, in_force)
        if "path" in request.GET and path_form.is_valid()
        else None
    )
    initial = {"content_exclusion": write_exclusions(in_force)}
    if test_result is not None:
        initial |= {"repository": test_result.repository, "path": test_result.path}
    editing = ExclusionEditor(ExclusionForm(initial=initial), current.version, test_result)
    return _render_page(request, member, current, editing)


def _save_exclusion(
    request: HttpRequest, member: CurrentMember, current: PolicyInForce
) -> HttpResponse:
    expected_version = whole_number(request.POST.get("expected_version", "")) or current.version
    form = ExclusionForm(request.POST)
    exclusions = _read_exclusions(form)
    if exclusions is None:
        return _render_page(
            request, member, current, ExclusionEditor(form, expected_version), status=400
        )
    if request.POST.get("step") == "test":
        return _render_page(
            request,
            member,
            current,
            ExclusionEditor(form, expected_version, _run_path_test(form, exclusions)),
        )
    base = current
    if expected_version != current.version:
        base = find_version(actor=member.actor, version=expected_version)
    policy = msgspec.structs.replace(base.policy, content_exclusion=exclusions)
    return show_review(request, member, PolicyDraft(policy, expected_version, origin="exclusion"))


def _read_exclusions(form: ExclusionForm) -> dict[str, tuple[str, ...]] | None:
    """Return the entered rules; None if the form has an error."""
    if not form.is_valid():
        return None
    try:
        exclusions = read_exclusions(form.cleaned_data["content_exclusion"])
        check_exclusions(exclusions)
    except InvalidValue as error:
        add_refusal(form, error)
        return None
    return exclusions


def _run_path_test(form: RepositoryFileForm, exclusion: dict[str, tuple[str, ...]]) -> PathTest:
    repository, path = form.cleaned_data["repository"], form.cleaned_data["path"]
    globs = matching_globs(exclusion, repository=repository, path=path)
    return PathTest(repository, path, globs)


def _render_page(
    request: HttpRequest,
    member: CurrentMember,
    current: PolicyInForce,
    editing: ExclusionEditor,
    status: int = 200,
) -> HttpResponse:
    context: dict[str, Any] = {
        "tabs": tabs(request, member),
        "current": current,
        "text": write_exclusions(current.policy.content_exclusion),
        "form": editing.form,
        "tested": editing.tested,
        "expected_version": editing.expected_version,
        "may_edit": member.actor.has_permission(Permission.WRITE_POLICY),
    }
    return render_page(
        request,
        member,
        _PAGE,
        context,
        part="console/content_exclusion/_test_result.html",
        status=status,
    )
