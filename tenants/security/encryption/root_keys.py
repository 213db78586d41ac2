"""Root keys: their protocol, the implementation for secrets, and the configured keys.

`aws_kms` has the other implementation. CARET_ROOT_KEYS lists root keys. The first one wraps tenant
keys, and all of them can unwrap. So tenant keys can move to a new root key without downtime.

    root-secret          derived from CARET_ROOT_SECRET: the default
    file:PATH            a file of 64 hex digits
    kms:KEY              an AWS KMS key by its ID, ARN or alias (needs the extra `kms`)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Protocol

from django.conf import settings

from caret.foundation.crypto.aead import seal, unseal
from caret.foundation.crypto.key_derivation import derive_key
from caret.foundation.environment import BadSetting
from tenants.security.encryption.envelope import KEY_BYTES, compute_key_fingerprint
from tenants.security.encryption.errors import RootKeyMissing

_PURPOSE: Final = "root-key/1"


class RootKey(Protocol):
    """A key that wraps tenant keys. `bound_to` is a context: unwrapping needs the same one."""

    @property
    def id(self) -> str:
        """The ID that is stored with each wrapped key. It reveals nothing about the key."""

    def wrap(self, key: bytes, *, bound_to: str) -> bytes:
        """Wrap a key. Raises RootKeyUnavailable."""

    def unwrap(self, wrapped: bytes, *, bound_to: str) -> bytes:
        """Unwrap a key. Raises DecryptionFailed, RootKeyUnavailable."""


class SecretRootKey:
    """A root key in this process's memory, derived from a secret."""

    def __init__(self, secret: bytes) -> None:
        self._key = derive_key(secret, _PURPOSE)
        self.id = f"secret:{compute_key_fingerprint(self._key).hex()}"

    def wrap(self, key: bytes, *, bound_to: str) -> bytes:
        return seal(self._key, key, bound_to=bound_to.encode())

    def unwrap(self, wrapped: bytes, *, bound_to: str) -> bytes:
        return unseal(self._key, wrapped, bound_to=bound_to.encode())


@dataclass(frozen=True, slots=True)
class RootKeys:
    current: RootKey  # the first of CARET_ROOT_KEYS; wraps new tenant keys
    by_id: Mapping[str, RootKey]  # includes the current one

    def get(self, key_id: str) -> RootKey:
        """Return the root key with the given ID. Raises RootKeyMissing."""
        try:
            return self.by_id[key_id]
        except KeyError:
            raise RootKeyMissing(f"CARET_ROOT_KEYS lacks the root key {key_id}.") from None


def load_root_keys() -> RootKeys:
    """Return the root keys that the settings name. Raises BadSetting, RootKeyUnavailable."""
    return open_root_keys(tuple(settings.ROOT_KEYS), settings.ROOT_SECRET)


@cache
def open_root_keys(names: tuple[str, ...], root_secret: bytes) -> RootKeys:
    """Open root keys by their names in CARET_ROOT_KEYS.

    A later call with the same arguments returns the keys that are already open.

    Raises BadSetting, RootKeyUnavailable.
    """
    if not names:
        raise BadSetting("CARET_ROOT_KEYS is empty; name a root key, such as root-secret.")
    keys = [_open_root_key(name, root_secret) for name in names]
    return RootKeys(current=keys[0], by_id={key.id: key for key in keys})


def _open_root_key(name: str, root_secret: bytes) -> RootKey:
    kind, _, location = name.partition(":")
    if name == "root-secret":
        return SecretRootKey(root_secret)
    if kind == "file" and location:
        return SecretRootKey(_read_secret(Path(location)))
    if kind == "kms" and location:
        return _open_kms_root_key(location)
    raise BadSetting(
        f"CARET_ROOT_KEYS names {name!r}; write root-secret, file:PATH or kms:KEY, with commas"
        " between them."
    )


def _read_secret(file: Path) -> bytes:
    try:
        secret = bytes.fromhex(file.read_text().strip())
    except OSError as error:
        raise BadSetting(f"CARET_ROOT_KEYS: the root key cannot be read: {error}.") from error
    except ValueError:
        secret = b""  # not hex digits: the check of the length fails
    if len(secret) != KEY_BYTES:
        raise BadSetting(f"CARET_ROOT_KEYS: {file} must hold 64 hex digits (32 random bytes).")
    return secret


def _open_kms_root_key(name: str) -> RootKey:
    try:
        # Imported here: boto3 is an optional dependency and takes half a second to import.
        from tenants.security.encryption.aws_kms import open_kms_root_key
    except ImportError as error:
        raise BadSetting(
            "CARET_ROOT_KEYS names a KMS key: install Caret with the extra `kms`."
        ) from error
    return open_kms_root_key(name)
