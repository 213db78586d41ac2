"""The patterns of allowed hosts: networks, host names and wildcards for subdomains."""

import pytest

from caret.foundation.egress.host_patterns import matches, require_pattern

ALLOWED = ("10.12.0.0/16", "fd00:1::/64", "engine.example.com", "*.engines.svc")


@pytest.mark.parametrize(
    "host",
    ["10.12.255.1", "fd00:1::7", "engine.example.com", "Engine.Example.com.", "a.b.engines.svc"],
)
def test_allowed_hosts_match(host: str) -> None:
    assert matches(host, ALLOWED)


@pytest.mark.parametrize(
    "host",
    [
        *("10.13.0.1", "fd00:2::7"),
        *("::ffff:10.12.0.1", "010.012.000.001", "168558593"),  # other notations of 10.12.0.1
        *("other.example.com", "engine.example.com.evil.net", "sub.engine.example.com"),
        *("a" * 64 + ".engines.svc", "a." * 130 + "engines.svc"),  # longer than DNS allows
        *("engines.svc", "evilengines.svc", ".engines.svc", "", "*.engines.svc"),
    ],
)
def test_other_hosts_do_not_match(host: str) -> None:
    assert not matches(host, ALLOWED)


def test_no_host_matches_without_patterns() -> None:
    assert not matches("10.12.0.1", ())


@pytest.mark.parametrize("text", ALLOWED)
def test_valid_patterns_are_accepted(text: str) -> None:
    require_pattern(text)


@pytest.mark.parametrize(
    "text",
    ["", "*", "*.", "a..b", "10.12.0.1/16", "10.12.0.0/40", "http://a", "a:8000", "-a", "A", "a/b"],
)
def test_invalid_patterns_are_rejected(text: str) -> None:
    # The messages are those of Python's module `ipaddress`.
    with pytest.raises(ValueError, match=r"does not appear|has host bits"):
        require_pattern(text)
