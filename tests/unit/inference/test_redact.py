"""Secrets are redacted before a text becomes part of a prompt."""

import base64
import json
import pkgutil
import re

import detect_secrets.plugins
import pytest
from detect_secrets.plugins.base import RegexBasedDetector
from detect_secrets.plugins.private_key import PrivateKeyDetector
from detect_secrets.util.filetype import FileType, determine_file_type
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.context.redaction import redact
from inference.context.redaction.redact import (
    REDACTED,
    drop_rest_of_private_key,
    ends_in_private_key,
    file_type,
    redact_line,
    redact_private_keys,
)

PYTHON = FileType.PYTHON
KEY_BODY = "MIIEpAIBAAKCAQEA7bq\nZ2VuZXJhdGVkIGZvciB0ZXN0cw\n"
# A secret, and a line of code in which {} stands for the secret.
TOKENS = [
    ("AKIA" + "ABCD1234" * 2, 'key_id = "{}"'),
    ("ghp_" + "a1B2" * 9, "token = {}"),
    ("glpat-" + "a1B2c3D4e5" * 2, "run(token={})"),
    ("xoxb-123456789012-abcdef", "slack = '{}'"),
    ("sk_live_" + "a1B2c3D4" * 3, "stripe({})"),
    ("SG." + "a" * 22 + "." + "b" * 43, "mail = {}"),
    ("pypi-AgEIcHlwaS5vcmc" + "a1B2" * 20, "password = {}"),
    ("123456789:" + "a1B2c" * 7, "bot = {}"),
]
SECRETS = [
    *TOKENS,
    ("hunter2", "url = 'postgres://bob:{}@db.internal/x'"),
    ("hunter2-and-more", 'password = "{}"'),
    ("correct horse", "my_api_key = '{}'"),
    ("9f86d081884c7d659a2feaa0c55ad015", "digest = '{}'"),
    ("Zm9vYmFyMTIzNDU2Nzg5MHF3ZXJ0eXVpb3A", "blob = '{}'"),
    (
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
        "jwt = '{}'",
    ),
]


@pytest.mark.parametrize(("secret", "line"), SECRETS)
def test_a_secret_is_replaced_and_the_rest_of_the_line_kept(secret: str, line: str) -> None:
    redacted = redact_line(line.format(secret), PYTHON)

    assert secret not in redacted
    assert REDACTED in redacted
    assert redacted.startswith(line.split("{}")[0])


@pytest.mark.parametrize(
    "line",
    [
        "password = get_password(user)",
        'api_key = os.environ["API_KEY"]',
        "password = '${PASSWORD}'",
        "def test_a_secret_is_replaced_and_the_rest_of_the_line_stays(secret: str) -> None:",
        "alphabet = 'abcdefghijklmnopqrstuvwxyz'",
        "run_id = '9f86d081884c7d659a2feaa0c55ad015'",  # the value of an ID is no secret
        "session = '123e4567-e89b-12d3-a456-426614174000'",
        "    return self.reader.read(path, encoding=encoding, errors=errors)",
        "",
    ],
)
def test_ordinary_code_is_unchanged(line: str) -> None:
    assert redact_line(line, PYTHON) is line


@pytest.mark.parametrize("path", ["app/.env", ".env.local", "a.ini", "b/c.yaml", "C:\\x\\d.toml"])
def test_passwords_in_configuration_files_need_no_quotes(path: str) -> None:
    assert "hunter2x" not in redact_line("db_password: hunter2x", file_type(path))
    assert redact_line("db_password: hunter2x", PYTHON) == "db_password: hunter2x"


@pytest.mark.parametrize(
    "path", ["a/b.py", "x.tar.yml", ".py", "..toml", "a.", "Makefile", "C:\\d\\E.INI", "a.b/c", ""]
)
def test_the_file_type_equals_that_of_the_library(path: str) -> None:
    name = path.replace("\\", "/").rpartition("/")[2].lower()

    assert file_type(path) is determine_file_type(name)


@pytest.mark.parametrize("header", [header.pattern for header in PrivateKeyDetector.denylist])
def test_every_kind_of_private_key_is_redacted(header: str) -> None:
    redacted = redact_private_keys(f"x\n{header}\n{KEY_BODY}")

    assert not any(line in redacted for line in KEY_BODY.split())


def test_a_private_key_is_redacted_and_the_text_around_it_kept() -> None:
    text = (
        f"a = 1\n-----BEGIN RSA PRIVATE KEY-----\n{KEY_BODY}-----END RSA PRIVATE KEY-----\nb = 2\n"
    )

    redacted = redact_private_keys(text)

    assert not any(line in redacted for line in KEY_BODY.split())
    assert redacted.startswith("a = 1\n")
    assert redacted.endswith("-----\nb = 2\n")


@pytest.mark.parametrize(
    "headers", ["", "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,5D8AD2FB\n\n"]
)
def test_a_truncated_private_key_is_redacted(headers: str) -> None:
    redacted = redact_private_keys(f"x\n-----BEGIN EC PRIVATE KEY-----\n{headers}{KEY_BODY}")

    assert not any(line in redacted for line in KEY_BODY.split())


@pytest.mark.parametrize(
    ("prefix", "suffix", "rest"),
    [
        (
            KEY_BODY,
            f"{KEY_BODY}-----END RSA PRIVATE KEY-----\nb",
            "-----END RSA PRIVATE KEY-----\nb",
        ),
        (f"{KEY_BODY}-----EN", "D RSA PRIVATE KEY-----\nb", "D RSA PRIVATE KEY-----\nb"),
        (KEY_BODY, f"{KEY_BODY}\nb", "\n\nb"),
        (KEY_BODY, "\nb\n\nc", "\nb\n\nc"),
        ("", KEY_BODY, ""),
    ],
    ids=["in the body", "in the end line", "no end line", "before a blank line", "no more text"],
)
def test_the_rest_of_a_private_key_that_the_cursor_splits_is_dropped(
    prefix: str, suffix: str, rest: str
) -> None:
    prefix = f"a\n-----BEGIN RSA PRIVATE KEY-----\n{prefix}"

    assert ends_in_private_key(prefix)
    assert drop_rest_of_private_key(prefix, suffix) == rest


@pytest.mark.parametrize(
    "text",
    [
        "a = 1\n",
        f"-----BEGIN RSA PRIVATE KEY-----\n{KEY_BODY}-----END RSA PRIVATE KEY-----",
        f"-----BEGIN RSA PRIVATE KEY-----\n{KEY_BODY}\nb = 2",
        "a REDACTED ",
    ],
)
def test_other_texts_do_not_end_in_a_private_key(text: str) -> None:
    assert not ends_in_private_key(text)


def test_text_without_private_keys_is_the_same_object() -> None:
    text = "the private key of a house\n"

    assert redact_private_keys(text) is text


def test_a_long_line_is_searched_in_parts() -> None:
    line = "x" * 5_000 + ' password = "hunter2-and-more" ' + "y" * 5_000

    assert "hunter2-and-more" not in redact_line(line, PYTHON)


@settings(deadline=None)
@given(st.text(), st.sampled_from(FileType))
def test_any_line_can_be_redacted_and_a_second_redaction_keeps_the_first(
    line: str, kind: FileType
) -> None:
    redacted = redact_line(line, kind)

    assert redact_line(redacted, kind).count(REDACTED) >= redacted.count(REDACTED)


def test_every_plugin_of_the_library_is_used_or_excluded_on_purpose() -> None:
    plugins = {module.name for module in pkgutil.iter_modules(detect_secrets.plugins.__path__)}
    used_plugins = {
        type(plugin).__module__.rpartition(".")[2]
        for plugin in (*redact.SHORT_TOKENS, *redact.LONG_TOKENS)
    }

    handled_separately = {"base", "basic_auth", "high_entropy_strings", "keyword", "private_key"}
    # Public IP addresses are not secrets (ADR 0025).
    assert plugins - used_plugins - handled_separately == {"ip_public"}


@pytest.mark.parametrize(("secret", "line"), TOKENS)
def test_every_token_has_a_run_that_is_long_enough_to_be_searched(secret: str, line: str) -> None:
    """Plug-ins search only lines with a run of SHORT_RUN_CHARS token characters."""
    runs = re.findall(r"[A-Za-z0-9_+/=-]+", line.format(secret))

    assert max(map(len, runs)) >= redact.SHORT_RUN_CHARS


@pytest.mark.parametrize("plugin", redact.LONG_TOKENS, ids=lambda plugin: type(plugin).__name__)
def test_every_pattern_of_a_plugin_for_long_tokens_requires_a_long_run(
    plugin: RegexBasedDetector,
) -> None:
    """These plug-ins search only lines with a run of LONG_RUN_CHARS token characters."""
    for regex in plugin.denylist:
        # The number in `[0-9A-Z]{16}`: how many token characters there are at least.
        lengths = [int(text) for text in re.findall(r"\]\{(\d+)", regex.pattern)]
        # The keys of AWS have a fixed beginning, AKIA, before the counted characters.
        num_fixed_chars = regex.pattern.count("AKIA") * len("AKIA")
        assert max(lengths) + num_fixed_chars >= redact.LONG_RUN_CHARS


# A part has 2,000 characters and begins 1,800 characters after the part before it.
@pytest.mark.parametrize("offset", [1_500, 1_795, 1_990, 2_000, 3_590, 3_790])
def test_secrets_at_the_edges_of_the_parts_of_a_long_line_are_found(offset: int) -> None:
    key = "AKIA" + "ABCD1234" * 2
    line = ("x = 1; " * 800)[: offset - 1] + f" {key} " + "y = 2; " * 100

    redacted = redact_line(line, PYTHON)

    assert redacted == line.replace(key, REDACTED)


@pytest.mark.parametrize(
    ("offset", "num_chars"),
    [(1_500, 600), (10, 5_000)],
    ids=["across two parts", "longer than a part"],
)
def test_a_json_web_token_longer_than_the_overlap_of_two_parts_is_removed_from_a_long_line(
    offset: int, num_chars: int
) -> None:
    header, payload, signature = (
        base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
        for text in ('{"alg":"RS256"}', json.dumps({"sub": "1" * num_chars}), "s" * 256)
    )
    line = f"{'a' * offset} token={header}.{payload}.{signature} {'x = 1; ' * 400}"

    redacted = redact_line(line, PYTHON)

    assert not any(part in redacted for part in (header, payload[:40], payload[-40:], signature))
    assert redacted.startswith("a" * offset)
    assert redacted.endswith("x = 1; ")


def test_the_rest_of_a_token_after_the_end_of_a_part_is_removed() -> None:
    token = "pypi-AgEIcHlwaS5vcmc" + "Ab1_" * 150
    # The token begins before character 2,000, the end of the first part, and ends after it.
    line = f"{'a = 1; ' * 240} {token} {'x = 1; ' * 400}"

    redacted = redact_line(line, PYTHON)

    assert "Ab1_" not in redacted


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_long_line_without_secrets_is_the_same_object(end: str) -> None:
    line = "x = [" + "1, " * 3_000 + end

    assert redact_line(line, PYTHON) is line
