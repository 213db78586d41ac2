"""Has the engines' caches forgotten: asked first, by who has just shown who he is."""

from typing import Final

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from console.current_member import Member, for_members
from console.error_messages import told
from console.layout.htmx import show
from console.layout.permission_required import allowed
from console.layout.step_up import confirmed
from console.layout.toasts import toast
from tenants.base.errors import Invalid
from tenants.base.permissions import Permission
from tenants.identity.members.tenant_status import raise_cache_epoch

_PAGE: Final = "console/cache/purge.html"


class PurgeForm(forms.Form):
    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        help_text=_("It stands in the audit trail."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )


@require_http_methods(["GET", "POST"])
@for_members
@allowed(Permission.WRITE_POLICY)
@confirmed
def purge(request: HttpRequest, member: Member) -> HttpResponse:
    form = PurgeForm(request.POST or None)
    if request.method == "POST" and form.is_valid() and _purged(request, member, form):
        return redirect("console:cache")
    status = 400 if form.errors else 200
    return show(request, member, _PAGE, {"form": form}, status=status)


def _purged(request: HttpRequest, member: Member, form: PurgeForm) -> bool:
    reason = form.cleaned_data["reason"]
    try:
        epoch = raise_cache_epoch(actor=member.actor, reason=reason, now=timezone.now())
    except Invalid as error:
        form.add_error(error.field if error.field in form.fields else None, told(error))
        return False
    toast(request, gettext("The cache is forgotten: epoch %(epoch)d has begun.") % {"epoch": epoch})
    return True
