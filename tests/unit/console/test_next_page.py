"""The parameter `next`, the page after a sign-in, may name only pages of the console."""

import pytest

from console.sign_in.next_page import MAX_CHARS, is_own_path


@pytest.mark.parametrize(
    "text",
    [
        *("/", "/keys/new", "/usage?days=7&team=a%20b", "/no-such-page", "/#top"),
        *("/search?q=http://a.example", "/search?q=a b", "/stra\u00dfe"),
        "/" + "a" * (MAX_CHARS - 1),
    ],
)
def test_a_path_of_the_console_is_accepted(text: str) -> None:
    assert is_own_path(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "foo", "foo/bar", "?a=b", "#top", " /keys", "\t/keys", "console:overview"),
        *("//evil.example", "///evil.example", "/\\evil.example", "\\\\evil.example", "\\/evil"),
        *("/\t/evil.example", "/\r/evil.example", "/\n\\evil.example"),
        *("https://evil.example", "http:evil.example", "HTTPS://testserver/", "data:text/html,x"),
        *("javascript:alert(1)", "JavaScript://%0aalert(1)", "http://testserver/keys"),
        *("/\r\nSet-Cookie: a=b", "/%0d%0aSet-Cookie: a=b", "/%0D%0A", "/\0", "/%00", "/a%7F"),
        *("/\u2028", "/\u202e", "/\ud800", "/%E2%80%A8", "/\u00a0"),
        "/" + "a" * MAX_CHARS,
    ],
)
def test_any_other_value_is_rejected(text: str) -> None:
    assert not is_own_path(text)
