"""`{% operators_asset NAME %}`: the address of a file of the operators' pages."""

from django import template

from console.operators.assets import url_of

register = template.Library()


@register.simple_tag
def operators_asset(name: str) -> str:
    return url_of(name)
