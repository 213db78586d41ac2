"""Filters of the policy pages.

`{{ row.reason|translate_reason }}` is the reason of a change. A reason that Caret wrote is
translated; a reason that a member wrote stays unchanged.
`{{ rule.policy_level|policy_level_title }}` is the tenant, team or user that a rule applies to.
"""

from django import template
from django.utils.translation import gettext

from console.views.policies import system_reasons

register = template.Library()


@register.filter
def translate_reason(reason: str) -> str:
    return system_reasons.translate_reason(reason)


@register.filter
def policy_level_title(policy_level: str) -> str:
    """Return a title for "tenant", "team:Platform" or "user:ada@example.com"."""
    kind, _, name = policy_level.partition(":")
    match kind:
        case "tenant":
            return gettext("Tenant")
        case "team":
            return gettext("Team %(name)s") % {"name": name}
        case _:
            return name
