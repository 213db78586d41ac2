"""The list of exports. It reloads itself while an export is being built."""

from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET

from console.error_messages import translate_error
from console.layout.htmx import render_page
from console.layout.lists.pagination import page_links
from console.layout.permission_required import permission_required
from console.sign_in.current_member import CurrentMember, member_required
from console.views.exports.presenters import row_of
from tenants.base.errors import InvalidValue
from tenants.base.permissions import Permission
from tenants.compliance.exports.jobs.queries import list_builds, list_definitions

_PAGE: Final = "console/exports/builds.html"
_PART: Final = "console/exports/_builds.html"
_LIMIT: Final = 25


@require_GET
@member_required
@permission_required(Permission.EXPORT)
def builds(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    context: dict[str, Any] = {}
    try:
        page = list_builds(
            actor=member.actor, limit=_LIMIT, cursor=request.GET.get("cursor") or None
        )
    except InvalidValue as error:
        return render_page(
            request, member, _PAGE, {"error": translate_error(error)}, part=_PART, status=400
        )
    titles = {each.name: gettext(each.title) for each in list_definitions(actor=member.actor)}
    rows = [row_of(build, titles) for build in page.rows]
    context["rows"] = rows
    context["turning"] = page_links(request, page)
    context["is_moving"] = any(row.is_under_way for row in rows)
    return render_page(request, member, _PAGE, context, part=_PART)
