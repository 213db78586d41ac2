"""`{{ record.language|named:"language" }}`: the display name of a language or an editor."""

from typing import Final

from django import template

from console.usage_filters import display_names

register: Final = template.Library()


@register.filter
def named(value: str, kind: str) -> str:
    return display_names.display_name(kind, value)
