"""`{% shows_first_steps request member as is_shown %}`: whether a page links to the first steps.

The first steps are for members who may use the playground: they create a key, try the playground
and connect an editor. A cookie says that the user has completed or dismissed the steps, so the tag
needs no query.
"""

from django import template
from django.http import HttpRequest

from console.sign_in.current_member import CurrentMember
from console.views.onboarding.detail import is_dismissed
from tenants.base.permissions import Permission

register = template.Library()


@register.simple_tag
def shows_first_steps(request: HttpRequest, member: CurrentMember) -> bool:
    return member.actor.has_permission(Permission.USE_PLAYGROUND) and not is_dismissed(request)
