"""The pages of one audit sink: its state, a test message, a replay and the deletion."""

from typing import Final
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from caret.foundation.concurrency.bulkhead import BulkheadFull
from console.layout.htmx import render_page
from console.layout.permission_required import permission_required
from console.layout.step_up import step_up_required
from console.layout.toasts import toast
from console.limits.outbound_limit import OUTBOUND_LIMIT
from console.sign_in.current_member import CurrentMember, member_required
from console.texts.delivery_errors import translate_delivery_error
from console.texts.error_messages import translate_error
from console.views.audit_sinks.presenters import row_of
from tenants.base.errors import InvalidValue
from tenants.base.permissions import Permission
from tenants.compliance.audit_sinks.operations import delete_sink, probe_sink, replay_sink
from tenants.compliance.audit_sinks.queries import get_sink

_PAGE: Final = "console/audit_sinks/detail.html"


class ReplayForm(forms.Form):
    # Number of the first audit entry to send again. The maximum is the largest integer that
    # JavaScript represents exactly, as in the API.
    from_sequence = forms.IntegerField(label=_("From entry"), min_value=1, max_value=2**53 - 1)


@require_GET
@member_required
@permission_required(Permission.READ_AUDIT)
def sink(request: HttpRequest, member: CurrentMember, sink_id: UUID) -> HttpResponse:
    return _render_page(request, member, sink_id, ReplayForm(initial={"from_sequence": 1}))


@require_POST
@member_required
@permission_required(Permission.WRITE_AUDIT_SINKS)
def test(request: HttpRequest, member: CurrentMember, sink_id: UUID) -> HttpResponse:
    try:
        with OUTBOUND_LIMIT.acquire(member.actor.tenant_id):
            result = probe_sink(actor=member.actor, sink_id=sink_id, clock=timezone.now)
    except BulkheadFull:
        messages.warning(
            request, gettext("Too many outgoing requests right now. Try again in a moment.")
        )
        return redirect("console:sinks-sink", sink_id)
    if result.delivered:
        toast(request, gettext("Test message delivered."))
    else:
        messages.error(request, translate_delivery_error(result.error))
    return redirect("console:sinks-sink", sink_id)


@require_POST
@member_required
@permission_required(Permission.WRITE_AUDIT_SINKS)
def replay(request: HttpRequest, member: CurrentMember, sink_id: UUID) -> HttpResponse:
    form = ReplayForm(request.POST)
    if form.is_valid() and _replay_entries(member, sink_id, form):
        toast(request, gettext("The entries are sent with the next delivery."))
        return redirect("console:sinks-sink", sink_id)
    return _render_page(request, member, sink_id, form, status=400)


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.WRITE_AUDIT_SINKS)
@step_up_required
def delete(request: HttpRequest, member: CurrentMember, sink_id: UUID) -> HttpResponse:
    sink_view = get_sink(actor=member.actor, sink_id=sink_id)
    if request.method == "GET":
        return render_page(
            request, member, "console/audit_sinks/delete.html", {"row": row_of(sink_view)}
        )
    delete_sink(actor=member.actor, sink_id=sink_id, now=timezone.now())
    toast(
        request,
        gettext("%(name)s deleted. No more entries are sent to it.") % {"name": sink_view.name},
    )
    return redirect("console:sinks")


def _replay_entries(member: CurrentMember, sink_id: UUID, form: ReplayForm) -> bool:
    """Start the replay. Return False, with an error in the form, if the number is invalid."""
    try:
        replay_sink(
            actor=member.actor,
            sink_id=sink_id,
            from_sequence=form.cleaned_data["from_sequence"],
            now=timezone.now(),
        )
    except InvalidValue as error:
        form.add_error("from_sequence", translate_error(error))
        return False
    return True


def _render_page(
    request: HttpRequest, member: CurrentMember, sink_id: UUID, form: ReplayForm, status: int = 200
) -> HttpResponse:
    sink_view = get_sink(actor=member.actor, sink_id=sink_id)
    can_write = member.actor.has_permission(Permission.WRITE_AUDIT_SINKS)
    context = {"row": row_of(sink_view), "form": form, "can_write": can_write}
    return render_page(request, member, _PAGE, context, status=status)
