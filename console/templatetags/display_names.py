"""`{{ record.language|named:"language" }}`: what people call it."""

from typing import Final

from django import template

from console.usage_filters import display_names

register: Final = template.Library()


@register.filter
def named(value: str, kind: str) -> str:
    return display_names.named(kind, value)
