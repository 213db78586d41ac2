"""`{{ verdict|told }}`: a sentence about a request, in the reader's language."""

from typing import Final

from django import template
from django.utils.translation import gettext

from console.insight.numbers import number
from tenants.usage.verdict import Amount, Verdict

register: Final = template.Library()


@register.filter
def told(verdict: Verdict) -> str:
    values = {
        name: number(value.value, value.digits) if isinstance(value, Amount) else value
        for name, value in verdict.values.items()
    }
    return gettext(verdict.wording).format(**values)
