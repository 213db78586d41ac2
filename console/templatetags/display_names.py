"""Display names of values in records.

{{ record.language|named:"language" }}   the display name of a language or an editor
{{ pool.tier|label }}                    the label of a tier, a mode, a role and others
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
