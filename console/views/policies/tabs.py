"""The tabs of the policy pages."""

from django.http import HttpRequest
from django.utils.translation import gettext

from console.layout.tabs import Tab, tabs_of
from console.sign_in.current_member import CurrentMember
from tenants.base.permissions import Permission


def tabs(request: HttpRequest, member: CurrentMember) -> list[Tab]:
    pages = [("policies", gettext("Current"))]
    if member.actor.has_permission(Permission.READ_OVERRIDES):
        pages.append(("policies-overrides", gettext("Overrides")))
    pages += [
        ("policies-effective", gettext("Effective policy")),
        ("policies-explain", gettext("Check a file")),
        ("policies-history", gettext("History")),
    ]
    return tabs_of(request, pages)
