"""Addresses of teams."""

from django.urls import URLPattern, path

from console.views.teams import listed, team

_MEMBER = "teams/<uuid:team_id>/members/<uuid:user_id>"

urlpatterns: list[URLPattern] = [
    path("teams", listed.teams, name="teams"),
    path("teams/new", listed.new, name="teams-new"),
    path("teams/<uuid:team_id>", team.team, name="teams-team"),
    path("teams/<uuid:team_id>/add", team.add, name="teams-add"),
    path("teams/<uuid:team_id>/rename", team.rename, name="teams-rename"),
    path("teams/<uuid:team_id>/rename/undo", team.undo_rename, name="teams-undo-rename"),
    path("teams/<uuid:team_id>/delete", team.delete, name="teams-delete"),
    path(f"{_MEMBER}/out", team.take_out, name="teams-take-out"),
    path(f"{_MEMBER}/back", team.put_back, name="teams-put-back"),
]
