"""Tags of base.html: navigation and preferences of the request."""

from django import template
from django.http import HttpRequest

from console.layout.navigation import NavigationGroup, NavigationLink, list_groups, list_own_links
from console.layout.preferences import Preferences, preferences_of
from console.sign_in.current_member import CurrentMember

register = template.Library()


@register.simple_tag
def navigation(request: HttpRequest, member: CurrentMember) -> list[NavigationGroup]:
    return list_groups(request, member.actor)


@register.simple_tag
def own_navigation(request: HttpRequest, member: CurrentMember) -> list[NavigationLink]:
    return list_own_links(request, member.actor)


@register.simple_tag
def preferences(request: HttpRequest) -> Preferences:
    return preferences_of(request)
