"""Filters that turn stored values into names for the reader.

{{ record.language|named:"language" }}   the display name of a language
{{ record.editor|named:"editor" }}       the display name of an editor
{{ pool.tier|label }}                    the label of a tier, mode, role and so on
"""

from typing import Final

from django import template

from console.texts.labels import label_of
from console.usage_filters import display_names

register: Final = template.Library()


@register.filter
def named(value: str, kind: str) -> str:
    return display_names.display_name(kind, value)


@register.filter
def label(value: object) -> object:
    return label_of(value)
