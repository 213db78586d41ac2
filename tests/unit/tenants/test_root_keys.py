"""Root keys: valid settings, and the keys that each can unwrap."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws

from caret.foundation.crypto.aead import DecryptionFailed
from caret.foundation.environment import BadSetting
from tenants.security.encryption.aws_kms import KmsRootKey, open_kms_root_key
from tenants.security.encryption.errors import RootKeyMissing, RootKeyUnavailable
from tenants.security.encryption.root_keys import RootKey, SecretRootKey, open_root_keys
from tests.fakes.tenants import ROOT_SECRET

KEY = bytes(range(32))


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with mock_aws():
        yield


def make_kms_key(alias: str = "") -> str:
    client = boto3.client("kms")
    key_id: str = client.create_key()["KeyMetadata"]["KeyId"]
    if alias:
        client.create_alias(AliasName=alias, TargetKeyId=key_id)
    return key_id


@pytest.fixture(params=["secret", "kms"])
def root_key(request: pytest.FixtureRequest, aws: None) -> RootKey:
    if request.param == "kms":
        return open_kms_root_key(make_kms_key())
    return SecretRootKey(ROOT_SECRET)


def test_a_wrapped_key_can_be_unwrapped(root_key: RootKey) -> None:
    wrapped_key = root_key.wrap(KEY, bound_to="here")

    assert KEY not in wrapped_key
    assert root_key.unwrap(wrapped_key, bound_to="here") == KEY


def test_a_key_wrapped_for_another_place_is_not_unwrapped(root_key: RootKey) -> None:
    wrapped_key = root_key.wrap(KEY, bound_to="here")

    with pytest.raises(DecryptionFailed):
        root_key.unwrap(wrapped_key, bound_to="there")


def test_a_changed_key_is_not_unwrapped(root_key: RootKey) -> None:
    wrapped_key = bytearray(root_key.wrap(KEY, bound_to="here"))
    wrapped_key[-1] ^= 1

    with pytest.raises(DecryptionFailed):
        root_key.unwrap(bytes(wrapped_key), bound_to="here")


def test_another_kms_key_cannot_unwrap(aws: None) -> None:
    wrapped_key = open_kms_root_key(make_kms_key()).wrap(KEY, bound_to="here")

    # KMS reports the wrong key; moto reports a denied access.
    with pytest.raises((DecryptionFailed, RootKeyUnavailable)):
        open_kms_root_key(make_kms_key()).unwrap(wrapped_key, bound_to="here")


def test_a_kms_key_is_identified_by_its_arn(aws: None) -> None:
    key_id = make_kms_key("alias/caret")

    root_key = open_kms_root_key("alias/caret")

    assert root_key.id == open_kms_root_key(key_id).id
    assert root_key.id.startswith("kms:arn:aws:kms:eu-central-1:")


def test_a_missing_kms_key_is_unavailable(aws: None) -> None:
    with pytest.raises(RootKeyUnavailable, match="NotFoundException"):
        open_kms_root_key("alias/nobody")


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("IncorrectKeyException", DecryptionFailed),
        ("InvalidCiphertextException", DecryptionFailed),
        ("DisabledException", RootKeyUnavailable),
        ("KMSInvalidStateException", RootKeyUnavailable),
        ("AccessDeniedException", RootKeyUnavailable),
    ],
)
def test_kms_errors_mean_failed_decryption_or_an_unavailable_key(
    aws: None, code: str, error: type[Exception]
) -> None:
    client = boto3.client("kms")

    with Stubber(client) as stubber:
        stubber.add_client_error("decrypt", code)
        with pytest.raises(error):
            KmsRootKey(client, "arn").unwrap(b"wrapped", bound_to="here")


def test_without_credentials_a_kms_key_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)

    with pytest.raises(RootKeyUnavailable, match="NoCredentialsError"):
        open_kms_root_key("alias/caret")


def test_the_first_root_key_wraps_and_all_unwrap(tmp_path: Path) -> None:
    file = tmp_path / "root"
    file.write_text(secrets.token_hex(32) + "\n")
    second = SecretRootKey(ROOT_SECRET)

    root_keys = open_root_keys((f"file:{file}", "root-secret"), ROOT_SECRET)

    assert root_keys.current.id != second.id
    wrapped_key = second.wrap(KEY, bound_to="here")
    assert root_keys.get(second.id).unwrap(wrapped_key, bound_to="here") == KEY


def test_a_root_key_that_is_not_configured_is_missing() -> None:
    root_keys = open_root_keys(("root-secret",), ROOT_SECRET)

    with pytest.raises(RootKeyMissing, match="secret:0000"):
        root_keys.get("secret:0000")


def test_a_kms_key_can_be_configured(aws: None) -> None:
    root_keys = open_root_keys((f"kms:{make_kms_key()}",), ROOT_SECRET)

    assert isinstance(root_keys.current, KmsRootKey)


@pytest.mark.parametrize("name", ["", "secret", "kms:", "file:", "vault:x", "file:/no/such/file"])
def test_an_invalid_root_key_is_rejected(name: str) -> None:
    with pytest.raises(BadSetting, match="CARET_ROOT_KEYS"):
        open_root_keys((name,), ROOT_SECRET)


def test_no_root_key_at_all_is_rejected() -> None:
    with pytest.raises(BadSetting, match="CARET_ROOT_KEYS"):
        open_root_keys((), ROOT_SECRET)


@pytest.mark.parametrize(
    "text",
    ["", "ab", "x" * 64, secrets.token_hex(31)],
    ids=["empty", "short", "not hexadecimal", "cut"],
)
def test_the_error_for_a_file_without_a_root_key_does_not_contain_its_text(
    tmp_path: Path, text: str
) -> None:
    file = tmp_path / "root"
    file.write_text(text)

    with pytest.raises(BadSetting, match="64 hex digits") as exc_info:
        open_root_keys((f"file:{file}",), ROOT_SECRET)

    message = str(exc_info.value).replace(str(file), "")  # the path may contain the text
    assert not text or text not in message
