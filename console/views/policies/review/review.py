"""The review of a policy draft.

The page shows the effect of the draft and asks for the reason of the change. Then it saves the
draft, and offers to undo the change.
"""

from typing import Any, Final

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from console.layout.htmx import render_page
from console.layout.permission_required import permission_required
from console.layout.step_up import step_up_redirect
from console.layout.toasts import toast
from console.sign_in.current_member import CurrentMember, member_required
from console.views.policies.diff import changes_between, titles_of
from console.views.policies.form_fields import add_refusal, parse_whole_number
from console.views.policies.review.policy_draft import (
    ConcurrentChange,
    PolicyDraft,
    find_concurrent_change,
    read_draft,
    rebase_draft,
)
from console.views.policies.review.presenters import summarize_dry_run
from console.views.policies.system_reasons import reason_of_undoing
from tenants.base.errors import InvalidValue, VersionConflict
from tenants.base.permissions import Permission
from tenants.base.validation.text import MAX_REASON_CHARS
from tenants.policy.diff import is_destructive
from tenants.policy.document import serialize_policy
from tenants.policy.dry_run import preview_policy
from tenants.policy.operations import set_policy
from tenants.policy.queries import find_version, get_policy

_PAGE: Final = "console/policies/review.html"


class ReasonForm(forms.Form):
    reason = forms.CharField(
        label=_("Reason"),
        help_text=_("Recorded with the version and in the audit log."),
        max_length=MAX_REASON_CHARS,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.WRITE_POLICY)
def review(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    """Review a submitted draft (POST), or the return to an earlier version (GET).

    The query parameter `from` is the number of the earlier version.

    A POST with `step=save` saves the draft. With `step=merge`, the draft is first rebased on the
    current version.
    """
    if request.method == "GET":
        return show_review(request, member, _draft_earlier_version(request, member))
    draft = read_draft(request.POST)
    step = request.POST.get("step")
    if step == "save":
        return _save_policy(request, member, draft)
    if step == "merge":
        draft = _merge_draft(member, draft)
    return show_review(request, member, draft)


@require_http_methods(["POST"])
@member_required
@permission_required(Permission.WRITE_POLICY)
def undo(request: HttpRequest, member: CurrentMember, version: int) -> HttpResponse:
    """Save the policy of the version before `version` again, if `version` is still in force."""
    before = find_version(actor=member.actor, version=version - 1)
    if (
        step_up := _step_up_if_destructive(request, member, PolicyDraft(before.policy, version))
    ) is not None:
        return step_up
    try:
        policy = set_policy(
            actor=member.actor,
            document=serialize_policy(before.policy),
            reason=reason_of_undoing(version),
            expected_version=version,
            now=timezone.now(),
        )
    except VersionConflict:
        messages.error(request, gettext("Not undone: someone has saved another version since."))
        return redirect("console:policies")
    text = gettext("Change undone. Version %(version)s is now active.")
    toast(request, text % {"version": policy.version})
    return redirect("console:policies")


def show_review(
    request: HttpRequest,
    member: CurrentMember,
    draft: PolicyDraft,
    *,
    form: ReasonForm | None = None,
    status: int = 200,
) -> HttpResponse:
    """Show the changes and the effect of the draft; with status 409 after a concurrent change."""
    actor = member.actor
    current = get_policy(actor=actor)
    concurrent_change = find_concurrent_change(actor, draft, current)
    dry_run = preview_policy(
        actor=actor,
        document=serialize_policy(draft.policy),
        now=timezone.now(),
        before=current.policy,
    )
    context: dict[str, Any] = {
        "draft": draft,
        "edit_url": reverse(draft.edit_url_name),
        "current": current,
        "form": form or ReasonForm(initial={"reason": request.POST.get("reason", "")}),
        "changes": changes_between(current.policy, draft.policy),
        "effects": summarize_dry_run(dry_run),
        "concurrent_change": None
        if concurrent_change is None
        else _conflict_context(concurrent_change, draft),
    }
    return render_page(request, member, _PAGE, context, status=409 if concurrent_change else status)


def _save_policy(request: HttpRequest, member: CurrentMember, draft: PolicyDraft) -> HttpResponse:
    form = ReasonForm(request.POST)
    if not form.is_valid():
        return show_review(request, member, draft, form=form, status=400)
    if (step_up := _step_up_if_destructive(request, member, draft)) is not None:
        return step_up
    try:
        policy = set_policy(
            actor=member.actor,
            document=serialize_policy(draft.policy),
            reason=form.cleaned_data["reason"],
            expected_version=draft.expected_version,
            now=timezone.now(),
        )
    except InvalidValue as error:
        add_refusal(form, error)
        return show_review(request, member, draft, form=form, status=400)
    except VersionConflict:  # the review now shows the concurrent change
        return show_review(request, member, draft, form=form)
    text = gettext("Version %(version)s saved. Gateways apply it within a second.")
    toast(
        request,
        text % {"version": policy.version},
        undo_url=reverse("console:policies-undo", args=[policy.version]),
    )
    return redirect(f"console:{draft.origin}")


def _step_up_if_destructive(
    request: HttpRequest, member: CurrentMember, draft: PolicyDraft
) -> HttpResponse | None:
    """Return the redirect to the step-up; None if the change needs none.

    A change needs a step-up if it is destructive, and the user did not authenticate recently.
    """
    current = get_policy(actor=member.actor)
    # An outdated draft needs no step-up: versions only increase, so `set_policy` rejects the draft.
    if current.version != draft.expected_version or not is_destructive(
        current=current.policy, proposed=draft.policy
    ):
        return None
    return step_up_redirect(request, member)


def _draft_earlier_version(request: HttpRequest, member: CurrentMember) -> PolicyDraft:
    """Return a draft that restores the version in the query parameter `from`. Raises NotFound."""
    version = parse_whole_number(request.GET.get("from", ""))
    earlier_version = find_version(actor=member.actor, version=version or 0)
    return PolicyDraft(earlier_version.policy, get_policy(actor=member.actor).version)


def _merge_draft(member: CurrentMember, draft: PolicyDraft) -> PolicyDraft:
    concurrent_change = find_concurrent_change(member.actor, draft, get_policy(actor=member.actor))
    return draft if concurrent_change is None else rebase_draft(draft, concurrent_change)


def _conflict_context(concurrent_change: ConcurrentChange, draft: PolicyDraft) -> dict[str, Any]:
    base = concurrent_change.base.policy
    return {
        "current": concurrent_change.current,
        "other_changes": changes_between(base, concurrent_change.current.policy),
        "own_changes": changes_between(base, draft.policy),
        "conflicts": titles_of(concurrent_change.merged.conflicts),
    }
