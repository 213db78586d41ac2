"""`{{ row.reason|said_reason }}`: the reason of a policy change; translated if Caret wrote it."""

from django import template

from console.views.policies import system_reasons

register = template.Library()


@register.filter
def said_reason(reason: str) -> str:
    return system_reasons.said_reason(reason)
