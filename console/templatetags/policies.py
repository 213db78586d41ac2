"""`{{ row.reason|translate_reason }}`: the reason of a policy change; translated if Caret wrote it."""

from django import template

from console.views.policies import system_reasons

register = template.Library()


@register.filter
def translate_reason(reason: str) -> str:
    return system_reasons.translate_reason(reason)
