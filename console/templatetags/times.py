"""`{% time_element at ago=ago date=date %}`: the HTML of `<c-time>`.

A function instead of a template: long lists show a time in each row.
"""

from datetime import datetime
from typing import Final

from django import template
from django.utils.dateformat import format as format_datetime
from django.utils.formats import get_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince
from django.utils.timezone import localtime

register: Final = template.Library()


@register.simple_tag
def time_element(at: datetime, *, ago: object = "", date: object = "") -> SafeString:
    """Return the time in the reader's zone, with the exact time as its title.

    `ago` shows the time since then instead, `date` only the date.
    """
    local = localtime(at)
    if ago:
        text = timesince(at)
    else:
        text_format = "SHORT_DATE_FORMAT" if date else "SHORT_DATETIME_FORMAT"
        text = format_datetime(local, get_format(text_format))
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        local.isoformat(),
        format_datetime(local, f"{get_format('DATETIME_FORMAT')} T"),
        text,
    )
