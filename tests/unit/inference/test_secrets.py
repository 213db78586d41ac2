"""What looks like a credential."""

import base64
import random
import string

import pytest

from inference.completion.secrets import held_from, secret_spans

_RANDOM = random.Random(7)


def _token(num_chars: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    return "".join(_RANDOM.choice(alphabet) for _ in range(num_chars))


_JWT = ".".join(
    base64.urlsafe_b64encode(part).decode().rstrip("=")
    for part in (b'{"alg":"HS256","typ":"JWT"}', b'{"sub":"1234567890"}', b"signature-bytes")
)
# Made here, so that no scanner takes this file for a leak.
SECRETS = {
    "an AWS key": (
        "client = connect('",
        "AKIA" + _token(16, string.ascii_uppercase + string.digits),
        "')",
    ),
    "a GitHub token": ("token = '", "ghp_" + _token(36), "'"),
    "a GitLab token": ("  x: ", "glpat-" + _token(20), ""),
    "a Slack token": ('a("', "xoxb-123456789012-" + _token(24, string.ascii_lowercase), '")'),
    "a Stripe key": ("stripe.api(", "sk_live_" + _token(24), ")"),
    "a JSON web token": ("a = '", _JWT, "'"),
    "a random string": ('a = "', _token(40), '"'),
    "a random hexadecimal string": ("a = '", _token(32, "0123456789abcdef"), "'"),
    "a password by its name": ('db_password = "', "hunter2!", '"'),
    "a password in a URL": ("postgres", "://user:hunter2@", "db/app"),
}


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_found_where_it_is(name: str) -> None:
    before, secret, after = SECRETS[name]

    spans = secret_spans(before + secret + after, "a.py")

    assert any(start <= len(before) and end >= len(before + secret) for start, end in spans), spans


@pytest.mark.parametrize("name", SECRETS)
def test_a_growing_secret_is_held_back_before_it_is_whole(name: str) -> None:
    before, secret, _ = SECRETS[name]
    seen = before + secret[:-1]

    place = held_from(seen)

    assert place is not None
    assert place <= len(before)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "    return self.connection_pool_of_this_tenant(request)",
        'password = os.environ["PASSWORD"]',
        'password = "${PASSWORD}"',
        'secret = "{{ secret }}"',
        "request_id = '0191f3a2-7c1b-7c3a-9b1e-0242ac120002'",
        'ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"',
        'url = "https://example.com/a/rather/long/path/to/some/thing"',
        "from inference.completion.request import CompletionRequest",
    ],
)
def test_ordinary_code_has_no_secret(line: str) -> None:
    assert secret_spans(line, "a.py") == []


def test_configuration_needs_no_quotes() -> None:
    line = "  db_password: hunter2!"

    assert secret_spans(line, "a.yaml") == [(15, 23)]
    assert secret_spans(line, "a.py") == []


def test_a_line_of_packed_data_is_looked_at_to_a_point() -> None:
    line = "A" * 1_000_000 + " password = 'hunter2!'"

    assert secret_spans(line) == []


def test_ordinary_code_is_not_held_back() -> None:
    assert held_from("    return self.pool.of(request)") is None
