"""A select list of many options, such as the time zones."""

from collections.abc import Collection, Iterable
from typing import Any

from django import forms
from django.forms.renderers import BaseRenderer
from django.forms.utils import flatatt
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString


class LongSelect(forms.Select):
    """Renders the same element as its base class, but faster.

    The base class renders two templates for each option.
    """

    def render(
        self,
        name: str,
        value: Any,
        attrs: dict[str, Any] | None = None,
        renderer: BaseRenderer | None = None,
    ) -> SafeString:
        all_attrs = {"name": name, **self.build_attrs(self.attrs, attrs)}
        options = _render_choices(self.choices, self.format_value(value))
        return format_html("<select{}>{}</select>", flatatt(all_attrs), options)


def _render_choices(choices: Iterable[tuple[Any, Any]], selected: Collection[str]) -> SafeString:
    return format_html_join("", "{}", ((_render(*choice, selected),) for choice in choices))


def _render(value: Any, label: Any, selected: Collection[str]) -> SafeString:
    """Return one option. If the label is a list of choices, return a group named `value`."""
    if isinstance(label, list | tuple):
        return format_html(
            '<optgroup label="{}">{}</optgroup>', value, _render_choices(label, selected)
        )
    mark = SafeString(" selected" if str(value) in selected else "")
    return format_html('<option value="{}"{}>{}</option>', value, mark, label)
