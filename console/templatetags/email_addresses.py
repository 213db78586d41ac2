"""`{{ row.email|breakable }}`: an address that does not fit breaks where people would break it."""

from typing import Final

from django import template
from django.utils.html import conditional_escape
from django.utils.safestring import SafeString, mark_safe

register: Final = template.Library()


@register.filter
def breakable(text: str) -> SafeString:
    """After its @, if it has one."""
    return mark_safe(conditional_escape(text).replace("@", "@<wbr>"))  # noqa: S308  # escaped above
