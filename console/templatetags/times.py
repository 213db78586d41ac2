"""`{% time_element at ago=ago date=date %}`: the HTML of the component `<c-time>`.

It is a function because long lists show a time in each row, and a template would be slower.
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
    """Return the element. It shows the time in the reader's zone, and in its title the exact time.

    If `ago` is true (in a template, any non-empty value), it shows how long ago the time was. If
    only `date` is true, it shows the date.
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
