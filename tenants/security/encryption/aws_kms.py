"""A root key that never leaves AWS KMS. KMS wraps or unwraps a key in 10 to 50 ms.

boto3 itself finds the region and the credentials, for example in AWS_REGION and the instance's
role.
"""

from typing import Any, Final, Protocol

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from caret.foundation.crypto.aead import DecryptionFailed
from tenants.security.encryption.errors import RootKeyUnavailable

_CONTEXT: Final = "caret"  # name of the only entry of KMS's encryption context
_CONFIG: Final = Config(connect_timeout=3, read_timeout=5, retries={"max_attempts": 2})
# KMS returns these codes for a changed ciphertext, for another key and for another context.
_BROKEN: Final = frozenset({"InvalidCiphertextException", "IncorrectKeyException"})


class KmsClient(Protocol):
    """The methods of boto3's KMS client that are used here."""

    def describe_key(self, *, KeyId: str) -> Any: ...  # noqa: N803  # boto3's names
    def encrypt(
        self,
        *,
        KeyId: str,  # noqa: N803
        Plaintext: bytes,  # noqa: N803
        EncryptionContext: dict[str, str],  # noqa: N803
    ) -> Any: ...
    def decrypt(
        self,
        *,
        KeyId: str,  # noqa: N803
        CiphertextBlob: bytes,  # noqa: N803
        EncryptionContext: dict[str, str],  # noqa: N803
    ) -> Any: ...


class KmsRootKey:
    """A KMS key, identified by its ARN, because an alias may later refer to another key."""

    def __init__(self, client: KmsClient, arn: str) -> None:
        self._client = client
        self._arn = arn
        self.id = f"kms:{arn}"

    def wrap(self, key: bytes, *, bound_to: str) -> bytes:
        try:
            response = self._client.encrypt(
                KeyId=self._arn, Plaintext=key, EncryptionContext={_CONTEXT: bound_to}
            )
        except (ClientError, BotoCoreError) as error:
            raise _to_unavailable_error(error) from error
        return bytes(response["CiphertextBlob"])

    def unwrap(self, wrapped: bytes, *, bound_to: str) -> bytes:
        try:
            response = self._client.decrypt(
                KeyId=self._arn, CiphertextBlob=wrapped, EncryptionContext={_CONTEXT: bound_to}
            )
        except (ClientError, BotoCoreError) as error:
            if _read_error_code(error) in _BROKEN:
                raise DecryptionFailed from error
            raise _to_unavailable_error(error) from error
        return bytes(response["Plaintext"])


def open_kms_root_key(name: str) -> KmsRootKey:
    """Open a KMS key by its ID, ARN or alias (`alias/...`). Raises RootKeyUnavailable."""
    try:
        client: KmsClient = boto3.client("kms", config=_CONFIG)
        arn = client.describe_key(KeyId=name)["KeyMetadata"]["Arn"]
    except (ClientError, BotoCoreError) as error:
        raise _to_unavailable_error(error) from error
    return KmsRootKey(client, arn)


def _to_unavailable_error(error: Exception) -> RootKeyUnavailable:
    return RootKeyUnavailable(f"AWS KMS: {_read_error_code(error) or type(error).__name__}.")


def _read_error_code(error: Exception) -> str:
    return str(error.response["Error"]["Code"]) if isinstance(error, ClientError) else ""
