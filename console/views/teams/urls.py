"""URLs of the pages of teams."""

from django.urls import URLPattern, path

from console.views.teams import detail
from console.views.teams import list as list_page

_MEMBER = "teams/<uuid:team_id>/members/<uuid:user_id>"

urlpatterns: list[URLPattern] = [
    path("teams", list_page.teams, name="teams"),
    path("teams/new", list_page.new_team, name="teams-new"),
    path("teams/<uuid:team_id>", detail.show_team, name="teams-team"),
    path("teams/<uuid:team_id>/add", detail.add_member, name="teams-add"),
    path("teams/<uuid:team_id>/rename", detail.rename, name="teams-rename"),
    path("teams/<uuid:team_id>/rename/undo", detail.undo_rename, name="teams-undo-rename"),
    path("teams/<uuid:team_id>/delete", detail.delete, name="teams-delete"),
    path(f"{_MEMBER}/out", detail.remove_member, name="teams-take-out"),
    path(f"{_MEMBER}/back", detail.undo_remove_member, name="teams-put-back"),
]
