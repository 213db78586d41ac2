"""Template tags of base.html: the navigation, and the preferences of the reader."""

from django import template
from django.http import HttpRequest

from console.layout.navigation import (
    NavigationGroup,
    NavigationLink,
    list_account_links,
    list_groups,
)
from console.layout.preferences import Preferences, preferences_of
from console.sign_in.current_member import CurrentMember

register = template.Library()


@register.simple_tag
def navigation(request: HttpRequest, member: CurrentMember) -> list[NavigationGroup]:
    return list_groups(request, member.actor)


@register.simple_tag
def own_navigation(request: HttpRequest, member: CurrentMember) -> list[NavigationLink]:
    """Return the links to the member's own pages."""
    return list_account_links(request, member.actor)


@register.simple_tag
def preferences(request: HttpRequest) -> Preferences:
    return preferences_of(request)
