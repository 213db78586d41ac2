"""The notation of network addresses on pages."""

import pytest

from console.templatetags.email_addresses import breakable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ada@acme.example", "ada@<wbr>acme.example"),
        ("Ada", "Ada"),
        ("<b>@x", "&lt;b&gt;@<wbr>x"),
        ("", ""),
    ],
)
def test_one_breaks_after_its_at(text: str, shown: str) -> None:
    assert breakable(text) == shown
