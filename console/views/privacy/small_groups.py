"""The setting for the smallest group of users whose figures reports show."""

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
from tenants.base.errors import InvalidValue
from tenants.base.permissions import Permission
from tenants.base.validation.text import MAX_REASON_CHARS
from tenants.usage.reports.operations import MAX_MIN_USERS, set_min_group_users
from tenants.usage.reports.queries import get_min_group_size


class SmallGroupsForm(forms.Form):
    min_users = forms.IntegerField(
        label=_("Smallest group"),
        min_value=1,
        max_value=MAX_MIN_USERS,
        help_text=_(
            "Number of users. With 1, reports and the seat table show the figures of each user."
        ),
    )
    reason = forms.CharField(
        label=_("Reason"),
        max_length=MAX_REASON_CHARS,
        help_text=_("Recorded in the audit log."),
        widget=forms.TextInput({"autocomplete": "off"}),
    )


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.WRITE_POLICY)
@step_up_required
def edit_min_users(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    if request.method == "GET":
        initial = {"min_users": get_min_group_size(actor=member.actor)}
        return _render_page(request, member, SmallGroupsForm(initial=initial))
    form = SmallGroupsForm(request.POST)
    if not form.is_valid() or not _save_min_users(member, form):
        return _render_page(request, member, form, status=400)
    toast(request, gettext("Setting saved. All reports use it from now on."))
    return redirect("console:privacy-small-groups")


def _save_min_users(member: CurrentMember, form: SmallGroupsForm) -> bool:
    """Save the setting. If that fails, add the error to the form and return False."""
    try:
        set_min_group_users(
            actor=member.actor,
            min_users=form.cleaned_data["min_users"],
            reason=form.cleaned_data["reason"],
            now=timezone.now(),
        )
    except InvalidValue as error:
        form.add_error(error.field if error.field in form.fields else None, translate_error(error))
        return False
    return True


def _render_page(
    request: HttpRequest, member: CurrentMember, form: SmallGroupsForm, status: int = 200
) -> HttpResponse:
    context = {"form": form}
    return render_page(request, member, "console/privacy/small_groups.html", context, status=status)
