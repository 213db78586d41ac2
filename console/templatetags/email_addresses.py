"""`{{ row.email|breakable }}`: an e-mail address that may wrap at a readable place."""

from typing import Final

from django import template
from django.utils.html import conditional_escape
from django.utils.safestring import SafeString, mark_safe

register: Final = template.Library()


@register.filter
def breakable(text: str) -> SafeString:
    """Return the escaped text, which may wrap after its @."""
    return mark_safe(conditional_escape(text).replace("@", "@<wbr>"))  # noqa: S308  # escaped above
