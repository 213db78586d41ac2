"""The list of exports. It reloads itself while an export is being built."""

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET

from console.layout.lists.list_page import ListPage, ListQuery
from console.layout.permission_required import permission_required
from console.sign_in.current_member import CurrentMember, member_required
from console.views.exports.presenters import ExportRow, row_of
from tenants.base.pagination import Page, map_page
from tenants.base.permissions import Permission
from tenants.compliance.exports.jobs.queries import list_builds, list_definitions


def _find_exports(asked: ListQuery) -> Page[ExportRow]:
    page = list_builds(actor=asked.actor, limit=asked.limit, cursor=asked.cursor)
    titles = {each.name: gettext(each.title) for each in list_definitions(actor=asked.actor)}
    return map_page(page, lambda build: row_of(build, titles))


_EXPORTS: Final = ListPage(
    template="console/exports/builds.html",
    fragment="console/exports/_builds.html",
    query=_find_exports,
    shows_errors=True,
    context=lambda _, page: {"is_moving": any(row.is_under_way for row in page.rows)},
)


@require_GET
@member_required
@permission_required(Permission.EXPORT)
def builds(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    return _EXPORTS.render(request, member)
