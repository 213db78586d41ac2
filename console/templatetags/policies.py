"""`{{ row.reason|said_reason }}`: why somebody changed a policy, in the reader's language
where it is Caret that says so."""

from django import template

from console.views.policies import system_reasons

register = template.Library()


@register.filter
def said_reason(reason: str) -> str:
    return system_reasons.said_reason(reason)
