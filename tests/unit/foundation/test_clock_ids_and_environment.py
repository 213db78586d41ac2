"""Conversion of times, IDs, keys derived from the root secret, and settings in the environment."""

import uuid
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caret.foundation.clock import from_unix_ms, to_unix_ms
from caret.foundation.crypto.key_derivation import derive_key, parse_root_secret
from caret.foundation.environment import (
    BadSetting,
    env_bool,
    env_int,
    env_list,
    env_secret,
    env_server,
    env_text,
)
from caret.foundation.ids import new_request_id, uuid7

NUM_BITS_AFTER_TIME = 80  # a UUID of version 7 begins with its time in milliseconds, 48 bits
MAX_MS = 253_402_300_799_999  # the last millisecond of the year 9999


@given(st.integers(min_value=0, max_value=MAX_MS))
def test_milliseconds_survive_conversion_to_a_datetime(value_ms: int) -> None:
    assert to_unix_ms(from_unix_ms(value_ms)) == value_ms


def test_a_time_after_the_last_year_is_rejected() -> None:
    with pytest.raises(OverflowError):
        from_unix_ms(MAX_MS + 1)


def test_zero_is_the_unix_epoch() -> None:
    assert from_unix_ms(0) == datetime(1970, 1, 1, tzinfo=UTC)


def test_ids_of_a_later_millisecond_are_larger() -> None:
    assert uuid7(now_ms=1_000) < uuid7(now_ms=1_001)


def test_ids_contain_their_version_and_time() -> None:
    value = uuid7(now_ms=1_700_000_000_000)

    assert value.version == 7
    assert value.variant == "specified in RFC 4122"
    assert value.int >> NUM_BITS_AFTER_TIME == 1_700_000_000_000


def test_a_request_id_is_a_uuid7() -> None:
    text = new_request_id(now_ms=1_700_000_000_000)

    value = uuid.UUID(text)

    assert str(value) == text
    assert value.version == 7
    assert value.variant == "specified in RFC 4122"
    assert value.int >> NUM_BITS_AFTER_TIME == 1_700_000_000_000
    assert new_request_id(now_ms=1_700_000_000_000) != text


def test_keys_for_different_purposes_differ() -> None:
    assert derive_key(bytes(32), "a") != derive_key(bytes(32), "b")


def test_a_derived_key_never_changes() -> None:
    # The expected key was calculated by RFC 5869, without Caret's code. If the derived key changed,
    # stored digests would no longer match their credentials.
    expected = "1d6e1a6fdf6dc13ad6b40ca7aea57a46b295b3b6bd948e1a5fc44adc0a3e4f12"

    assert derive_key(bytes(32), "key-pepper/1").hex() == expected


@pytest.mark.parametrize("text", ["", "ab", "zz" * 32, "ab" * 31, "ab" * 33])
def test_a_malformed_root_secret_is_rejected_without_repeating_it(text: str) -> None:
    with pytest.raises(BadSetting) as exc_info:
        parse_root_secret(text)

    assert text == "" or text not in str(exc_info.value)  # every message contains an empty text


def test_a_setting_that_is_no_boolean_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARET_X", "yes")

    with pytest.raises(BadSetting, match="CARET_X"):
        env_bool("CARET_X", default=False)


@pytest.mark.parametrize("text", ["0", "11", "-1", "1.5", "one", "", "٣"])  # the last: Arabic 3
def test_a_setting_that_is_no_integer_in_its_range_is_rejected(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("CARET_X", text)

    with pytest.raises(BadSetting, match="CARET_X"):
        env_int("CARET_X", default=5, low=1, high=10)


def test_a_missing_setting_without_a_default_is_rejected() -> None:
    with pytest.raises(BadSetting, match="CARET_MISSING"):
        env_text("CARET_MISSING")


def test_blank_entries_of_a_list_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARET_X", " a, ,b,")

    assert env_list("CARET_X") == ["a", "b"]


def test_a_secret_is_read_from_its_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("quiet\n")
    monkeypatch.setenv("CARET_X_FILE", str(tmp_path / "secret"))

    assert env_secret("CARET_X") == "quiet"


def test_a_secret_in_the_environment_needs_no_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CARET_X", "loud")

    assert env_secret("CARET_X", default_file=tmp_path / "missing") == "loud"


def test_the_error_for_a_missing_secret_names_the_setting(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="CARET_X"):
        env_secret("CARET_X", default_file=tmp_path / "missing")


def test_a_server_setting_has_an_ip_address_and_a_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARET_X", "[2001:db8::1]:53")

    assert env_server("CARET_X") == ("2001:db8::1", 53)


@pytest.mark.parametrize("text", ["10.0.0.2", "10.0.0.2:-1", "10.0.0.2:0", "1.2.3.4:65536", "a:53"])
def test_the_error_for_an_invalid_server_names_the_setting(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("CARET_X", text)

    with pytest.raises(BadSetting, match="CARET_X"):
        env_server("CARET_X")
