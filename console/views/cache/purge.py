"""The purge of the tenant's prefix cache, after a confirmation and a step-up."""

from typing import Final

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from console.error_messages import translate_error
from console.layout.htmx import render_page
from console.layout.permission_required import permission_required
from console.layout.step_up import step_up_required
from console.layout.toasts import toast
from console.sign_in.current_member import CurrentMember, member_required
from tenants.base.errors import InvalidValue
from tenants.base.permissions import Permission
from tenants.identity.members.tenant_status import purge_cache

_PAGE: Final = "console/cache/purge.html"


class PurgeForm(forms.Form):
    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        help_text=_("Recorded in the audit log."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.WRITE_POLICY)
@step_up_required
def purge(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    form = PurgeForm(request.POST or None)
    if request.method == "POST" and form.is_valid() and _purge_cache(request, member, form):
        return redirect("console:cache")
    status = 400 if form.errors else 200
    return render_page(request, member, _PAGE, {"form": form}, status=status)


def _purge_cache(request: HttpRequest, member: CurrentMember, form: PurgeForm) -> bool:
    reason = form.cleaned_data["reason"]
    try:
        epoch = purge_cache(actor=member.actor, reason=reason, now=timezone.now())
    except InvalidValue as error:
        form.add_error(error.field if error.field in form.fields else None, translate_error(error))
        return False
    toast(request, gettext("Cache purged. Epoch %(epoch)d has started.") % {"epoch": epoch})
    return True
