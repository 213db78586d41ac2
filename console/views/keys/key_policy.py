"""The page for the policy's rules about API keys.

The rules are: whether members may create their own keys, the maximum lifetime of keys, and the
revocation of idle keys.
"""

from typing import Final

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from console.layout.htmx import render_page
from console.layout.permission_required import permission_required
from console.layout.step_up import step_up_required
from console.layout.toasts import toast
from console.sign_in.current_member import CurrentMember, member_required
from console.texts.error_messages import translate_error
from console.views.policies.form_fields import checkbox_field
from tenants.base.errors import InvalidValue, VersionConflict
from tenants.base.permissions import Permission
from tenants.base.validation.text import MAX_REASON_CHARS
from tenants.policy.document import serialize_policy
from tenants.policy.operations import set_policy
from tenants.policy.queries import PolicyVersionView, get_policy

# Fields of the policy that the form changes.
_FIELDS: Final = ("allows_own_keys", "max_key_lifetime_days", "revoke_idle_keys_after_days")


class RulesForm(forms.Form):
    allows_own_keys = checkbox_field(
        _("Members can create their own keys"),
        _("For completions only, in the console or by signing in from an editor."),
    )
    max_key_lifetime_days = forms.IntegerField(
        label=_("Maximum key lifetime in days"),
        required=False,
        min_value=1,
        help_text=_("For keys created or rotated from now on. Leave empty for no limit."),
    )
    revoke_idle_keys_after_days = forms.IntegerField(
        label=_("Days until idle keys are revoked"),
        required=False,
        min_value=1,
        help_text=_("Checked every hour. Leave empty to keep idle keys."),
    )
    reason = forms.CharField(
        label=_("Reason"),
        max_length=MAX_REASON_CHARS,
        help_text=_("Recorded with the policy version."),
    )
    # The version of the policy that the user has seen. A concurrent change is not overwritten.
    version = forms.IntegerField(widget=forms.HiddenInput)


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.WRITE_POLICY)
@step_up_required
def rules(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    current = get_policy(actor=member.actor)
    if request.method == "GET":
        return _render_page(request, member, RulesForm(initial=_initial_values(current)))
    form = RulesForm(request.POST)
    if not form.is_valid() or not _save_rules(member, current, form):
        return _render_page(request, member, form, status=400)
    toast(request, gettext("Key policy applied."))
    return redirect("console:keys")


def _render_page(
    request: HttpRequest, member: CurrentMember, form: RulesForm, status: int = 200
) -> HttpResponse:
    return render_page(
        request, member, "console/keys/key_policy.html", {"form": form}, status=status
    )


def _initial_values(current: PolicyVersionView) -> dict[str, object]:
    document = serialize_policy(current.policy)
    return {name: document.get(name) for name in _FIELDS} | {"version": current.version}


def _save_rules(member: CurrentMember, current: PolicyVersionView, form: RulesForm) -> bool:
    """Save the rules. Return False, with an error in the form, if they are rejected."""
    document = serialize_policy(current.policy) | {
        name: form.cleaned_data[name] for name in _FIELDS
    }
    try:
        set_policy(
            actor=member.actor,
            document=document,
            reason=form.cleaned_data["reason"],
            now=timezone.now(),
            expected_version=form.cleaned_data["version"],
        )
    except VersionConflict:
        text = gettext("Someone changed the policy while you were editing. Reload the page.")
        form.add_error(None, text)
    except InvalidValue as error:
        form.add_error(error.field if error.field in form.fields else None, translate_error(error))
    else:
        return True
    return False
