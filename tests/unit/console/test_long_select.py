"""`LongSelect` renders the same element as Django's `Select`, but without templates."""

import pytest
from django import forms
from django.test.html import parse_html

from console.layout.lists.long_select import LongSelect

CHOICES = [
    ("", "All"),
    ("Teams & groups", [("team.*", "All <teams>"), ('team."x"', "One team")]),
    (7, "Seven"),
]


@pytest.mark.parametrize("value", ["", "team.*", 'team."x"', 7, "7", None, "unknown"])
def test_the_element_is_the_same_as_that_of_djangos_select(value: object) -> None:
    attrs = {"id": "id_action", "required": True, "disabled": False}

    expected, html = (
        widget({"list": "actions"}, choices=CHOICES).render("action", value, attrs)
        for widget in (forms.Select, LongSelect)
    )

    assert parse_html(html) == parse_html(expected)
