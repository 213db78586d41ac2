"""The page of a user's effective policy, and the check of a file against the rules for the user."""

from typing import Any, Final

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from caret.contracts.policy import Mode
from console.layout.htmx import render_page
from console.layout.permission_required import permission_required
from console.sign_in.current_member import CurrentMember, member_required
from console.views.policies.diff import list_value_groups
from console.views.policies.form_fields import AS_TYPED, RepositoryFileForm, add_refusal
from console.views.policies.presenters import MODES
from console.views.policies.tabs import tabs
from tenants.base.errors import InvalidValue
from tenants.base.permissions import Permission
from tenants.policy.access_explanation import AccessExplanation, AccessQuery, BlockingRule
from tenants.policy.dry_run import explain_access_for, find_effective_policy
from tenants.policy.effective_policy import EffectivePolicy
from tenants.security.authorization.actor import Actor

_MAX_EMAIL_CHARS: Final = 254  # the longest address that RFC 5321 allows


class UserForm(forms.Form):
    """The member to look at. If the field is empty, the page is about the signed-in user."""

    user_email = forms.CharField(
        label=_("Member's e-mail address"),
        required=False,
        max_length=_MAX_EMAIL_CHARS,
        widget=forms.EmailInput(attrs=AS_TYPED),
    )


class FileAccessForm(RepositoryFileForm, UserForm):
    mode = forms.ChoiceField(label=_("Completion mode"), choices=list(MODES.items()))


@require_GET
@member_required
@permission_required(Permission.READ_POLICY)
def show_effective_policy(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    form = UserForm(request.GET)
    effective_policy = _find_effective_policy(member.actor, form) if form.is_valid() else None
    context: dict[str, Any] = {
        **_form_context(request, member, form),
        "effective_policy": effective_policy,
        "who": form.cleaned_data.get("user_email") or member.email,
        "value_groups": []
        if effective_policy is None
        else list_value_groups(effective_policy.policy, effective_policy.decided_by),
    }
    return render_page(
        request,
        member,
        "console/policies/effective.html",
        context,
        part="console/policies/_effective.html",
        status=400 if form.errors else 200,
    )


@require_GET
@member_required
@permission_required(Permission.READ_POLICY)
def explain_access(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    is_submitted = "path" in request.GET
    form = FileAccessForm(
        request.GET if is_submitted else None, initial={"mode": Mode.INLINE.value}
    )
    explanation = (
        _find_explanation(member.actor, form) if is_submitted and form.is_valid() else None
    )
    context: dict[str, Any] = {
        **_form_context(request, member, form),
        "explanation": explanation,
        "rules": []
        if explanation is None
        else [
            (rule, _describe_rule(rule, form.cleaned_data["mode"])) for rule in explanation.rules
        ],
        "who": (form.cleaned_data.get("user_email") if is_submitted else "") or member.email,
    }
    return render_page(
        request,
        member,
        "console/policies/explain.html",
        context,
        part="console/policies/_explanation.html",
        status=400 if form.errors else 200,
    )


def _describe_rule(rule: BlockingRule, mode: str) -> str:
    """Return the text of a rule; "" for a content exclusion, whose pattern the page shows."""
    if rule.field == "features":
        return gettext("%(mode)s is off.") % {"mode": MODES[mode]}
    return gettext("A file path is required.") if rule.field == "requires_path" else ""


def _form_context(request: HttpRequest, member: CurrentMember, form: forms.Form) -> dict[str, Any]:
    can_choose_user = member.actor.has_permission(Permission.READ_OVERRIDES)
    return {"tabs": tabs(request, member), "form": form, "can_choose_user": can_choose_user}


def _find_effective_policy(actor: Actor, form: UserForm) -> EffectivePolicy | None:
    """Return the policy; None, with an error in the form, if there is no such member."""
    try:
        return find_effective_policy(actor=actor, email=form.cleaned_data["user_email"] or None)
    except InvalidValue as error:
        add_refusal(form, error)
        return None


def _find_explanation(actor: Actor, form: FileAccessForm) -> AccessExplanation | None:
    """Return the explanation; None, with an error in the form, if there is no such member."""
    cleaned = form.cleaned_data
    access_query = AccessQuery(Mode(cleaned["mode"]), cleaned["repository"], cleaned["path"])
    try:
        return explain_access_for(
            actor=actor, email=cleaned["user_email"] or None, access_query=access_query
        )
    except InvalidValue as error:
        add_refusal(form, error)
        return None
