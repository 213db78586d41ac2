"""The page of the policy in force, and the form that edits it."""

from django.http import HttpRequest, HttpResponse, QueryDict
from django.views.decorators.http import require_GET, require_http_methods

from console.layout.htmx import render_page
from console.layout.permission_required import permission_required
from console.sign_in.current_member import CurrentMember, member_required
from console.views.policies.choices import list_unavailability_notes, read_choices
from console.views.policies.diff import list_value_groups
from console.views.policies.form_fields import add_refusal
from console.views.policies.forms import PolicyForm, iterate_field_groups, policy_of
from console.views.policies.model_fields import list_languages
from console.views.policies.review.policy_draft import PolicyDraft, read_draft
from console.views.policies.review.review import show_review
from console.views.policies.tabs import tabs
from tenants.base.errors import InvalidValue
from tenants.base.permissions import Permission
from tenants.policy.queries import get_policy
from tenants.privacy.consent.consent_texts import TENANT_CONSENT_VERSION, get_consent_text


@require_GET
@member_required
def show_policy(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    current = get_policy(actor=member.actor)
    context = {
        "tabs": tabs(request, member),
        "current": current,
        "value_groups": list_value_groups(
            current.policy,
            notes=list_unavailability_notes(current.policy, read_choices(member.actor)),
        ),
        "may_edit": member.actor.has_permission(Permission.WRITE_POLICY),
    }
    return render_page(request, member, "console/policies/detail.html", context)


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.WRITE_POLICY)
def edit(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    """Edit the policy in force. A valid POST shows the review of the draft.

    With `step=edit`, the review page sends a draft back to the form.
    """
    if request.method == "GET":
        current = get_policy(actor=member.actor)
        draft = PolicyDraft(current.policy, current.version)
        return _render_edit_page(request, member, draft, _make_form(member, draft))
    draft = read_draft(request.POST)
    if request.POST.get("step") == "edit":
        return _render_edit_page(request, member, draft, _make_form(member, draft))
    form = _make_form(member, draft, request.POST)
    if not form.is_valid():
        return _render_edit_page(request, member, draft, form, status=400)
    try:
        policy = policy_of(form.cleaned_data, base=draft.policy)
    except InvalidValue as error:
        add_refusal(form, error)
        return _render_edit_page(request, member, draft, form, status=400)
    return show_review(request, member, PolicyDraft(policy, draft.expected_version))


def _make_form(
    member: CurrentMember, draft: PolicyDraft, data: QueryDict | None = None
) -> PolicyForm:
    return PolicyForm(data, policy=draft.policy, choices=read_choices(member.actor))


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
        "field_groups": iterate_field_groups(form),
        "languages": list_languages(),
        "tenant_consent_text": get_consent_text(TENANT_CONSENT_VERSION),
    }
    return render_page(request, member, "console/policies/edit.html", context, status=status)
