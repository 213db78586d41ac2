"""`{{ record.language|named:"language" }}`: what people call it."""

from typing import Final

from django import template

from console.insight import names

register: Final = template.Library()


@register.filter
def named(value: str, kind: str) -> str:
    return names.named(kind, value)
