"""The list of exports. While one is under way, the list asks for itself again."""

from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET

from console.current_member import Member, for_members
from console.error_messages import told
from console.layout.htmx import show
from console.layout.pagination import turning
from console.layout.permission_required import allowed
from console.views.exports.presenters import row_of
from tenants.base.errors import Invalid
from tenants.base.permissions import Permission
from tenants.compliance.exports.jobs.queries import list_builds, list_definitions

_PAGE: Final = "console/exports/builds.html"
_PART: Final = "console/exports/_builds.html"
_LIMIT: Final = 25


@require_GET
@for_members
@allowed(Permission.EXPORT)
def builds(request: HttpRequest, member: Member) -> HttpResponse:
    context: dict[str, Any] = {}
    try:
        page = list_builds(
            actor=member.actor, limit=_LIMIT, cursor=request.GET.get("cursor") or None
        )
    except Invalid as error:
        return show(request, member, _PAGE, {"error": told(error)}, part=_PART, status=400)
    titles = {each.name: gettext(each.title) for each in list_definitions(actor=member.actor)}
    rows = [row_of(build, titles) for build in page.rows]
    context["rows"] = rows
    context["turning"] = turning(request, page)
    context["is_moving"] = any(row.is_under_way for row in rows)
    return show(request, member, _PAGE, context, part=_PART)
