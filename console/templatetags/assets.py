"""`{% asset "base.css" %}`: the URL of one of the console's static files."""

from django import template

from console.assets.console_files import asset_url

register = template.Library()


@register.simple_tag
def asset(name: str) -> str:
    return asset_url(name)
