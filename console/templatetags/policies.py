"""`{{ row.reason|translate_reason }}`: a change's reason.

Reasons that Caret wrote are translated.
"""

from django import template

from console.views.policies import system_reasons

register = template.Library()


@register.filter
def translate_reason(reason: str) -> str:
    return system_reasons.translate_reason(reason)
