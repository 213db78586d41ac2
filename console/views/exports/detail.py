"""The pages of one export: its progress, its file and its proof."""

from collections.abc import Callable
from functools import wraps
from typing import Final
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from console.downloads.file_response import file_response
from console.layout.htmx import render_page
from console.layout.permission_required import permission_required
from console.layout.toasts import toast
from console.sign_in.current_member import CurrentMember, member_required
from console.texts.error_messages import translate_error
from console.views.exports.presenters import row_of
from tenants.base.errors import Conflict
from tenants.base.permissions import Permission
from tenants.compliance.exports.jobs.operations import cancel_export, create_signed_url
from tenants.compliance.exports.jobs.queries import find_export, list_definitions

_View = Callable[[HttpRequest, CurrentMember, UUID], HttpResponse]
_PAGE: Final = "console/exports/detail.html"
_PART: Final = "console/exports/_detail.html"


def _show_conflicts(view: _View) -> _View:
    """If the view raises Conflict, show the error as a message on the export's page."""

    @wraps(view)
    def guarded(request: HttpRequest, member: CurrentMember, export_id: UUID) -> HttpResponse:
        try:
            return view(request, member, export_id)
        except Conflict as error:
            messages.warning(request, translate_error(error))
            return redirect("console:exports-export", export_id)

    return guarded


@require_GET
@member_required
@permission_required(Permission.EXPORT)
def export(request: HttpRequest, member: CurrentMember, export_id: UUID) -> HttpResponse:
    job = find_export(actor=member.actor, export_id=export_id)
    titles = {
        definition.name: gettext(definition.title)
        for definition in list_definitions(actor=member.actor)
    }
    return render_page(request, member, _PAGE, {"row": row_of(job, titles)}, part=_PART)


@require_GET
@member_required
@permission_required(Permission.EXPORT)
@_show_conflicts
def proof(request: HttpRequest, member: CurrentMember, export_id: UUID) -> HttpResponse:
    job = find_export(actor=member.actor, export_id=export_id)
    if not job.proof:
        raise Conflict("The proof is available when the export is finished.")
    name = f"{job.name}.proof.json"
    return file_response(job.proof, name=name, content_type="application/json")


@require_POST
@member_required
@permission_required(Permission.EXPORT)
@_show_conflicts
def fetch(request: HttpRequest, member: CurrentMember, export_id: UUID) -> HttpResponse:
    """Redirect to a new signed URL of the file, which is valid for a few minutes."""
    link = create_signed_url(actor=member.actor, export_id=export_id, now=timezone.now())
    return redirect("console:export-file", link.token)


@require_POST
@member_required
@permission_required(Permission.EXPORT)
@_show_conflicts
def cancel(request: HttpRequest, member: CurrentMember, export_id: UUID) -> HttpResponse:
    cancel_export(actor=member.actor, export_id=export_id, now=timezone.now())
    toast(request, gettext("Export cancelled."))
    return redirect("console:exports")
