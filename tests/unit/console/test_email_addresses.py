"""The line break that browsers may insert into email addresses on pages."""

import pytest

from console.templatetags.email_addresses import breakable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ada@acme.example", "ada@<wbr>acme.example"),
        ("Ada", "Ada"),
        ("<b>@x", "&lt;b&gt;@<wbr>x"),
        ("", ""),
    ],
)
def test_an_email_address_may_break_after_the_at_sign(text: str, expected: str) -> None:
    assert breakable(text) == expected
