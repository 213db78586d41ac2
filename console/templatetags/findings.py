"""`{{ finding|translate_finding }}`: a sentence about a request, in the reader's language."""

from typing import Final

from django import template
from django.utils.translation import gettext

from console.usage_filters.number_format import format_number
from console.usage_filters.request_labels import STAGES
from tenants.usage.requests.finding import Finding, Quantity

register: Final = template.Library()


@register.filter
def translate_finding(finding: Finding) -> str:
    values = {name: _format_value(name, value) for name, value in finding.values.items()}
    return gettext(finding.wording).format(**values)


def _format_value(name: str, value: Quantity | str) -> str:
    """Return a value of a finding. The value named "stage" is a stage of a completion."""
    if isinstance(value, Quantity):
        return format_number(value.value, value.digits)
    if name == "stage":
        return gettext("“%(name)s”") % {"name": STAGES.get(value, value)}
    return value
