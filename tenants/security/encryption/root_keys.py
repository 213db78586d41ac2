"""The root key as a port, the installation's own secret as an adapter, and which are configured.

CARET_ROOT_KEYS lists root keys; the first wraps, all of them unwrap, so that tenants' keys can move
from one to another while everything runs:

    root-secret          derived from CARET_ROOT_SECRET: the default
    file:PATH            a file of 64 hex digits
    kms:KEY              an AWS KMS key by its id, ARN or alias (the extra `kms`)
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Protocol

from django.conf import settings

from caret.foundation.crypto.aead import seal, unseal
from caret.foundation.crypto.key_derivation import derive_key
from caret.foundation.environment import BadSetting
from tenants.security.encryption.envelope import KEY_BYTES, fingerprint
from tenants.security.encryption.errors import RootKeyMissing

_PURPOSE: Final = "root-key/1"


class RootKey(Protocol):
    @property
    def id(self) -> str:
        """Stored beside what it has wrapped; says which key it is, and nothing about it."""

    def wrap(self, key: bytes, *, bound_to: str) -> bytes:
        """Raises RootKeyUnavailable."""

    def unwrap(self, wrapped: bytes, *, bound_to: str) -> bytes:
        """Raises DecryptionFailed, RootKeyUnavailable."""


class SecretRootKey:
    """Of 32 bytes that this process holds."""

    def __init__(self, secret: bytes) -> None:
        self._key = derive_key(secret, _PURPOSE)
        self.id = f"secret:{fingerprint(self._key).hex()}"

    def wrap(self, key: bytes, *, bound_to: str) -> bytes:
        return seal(self._key, key, bound_to=bound_to.encode())

    def unwrap(self, wrapped: bytes, *, bound_to: str) -> bytes:
        return unseal(self._key, wrapped, bound_to=bound_to.encode())


@dataclass(frozen=True, slots=True)
class RootKeys:
    current: RootKey
    by_id: Mapping[str, RootKey]  # the current one, too

    def get(self, key_id: str) -> RootKey:
        """Raises RootKeyMissing."""
        try:
            return self.by_id[key_id]
        except KeyError:
            raise RootKeyMissing(f"CARET_ROOT_KEYS names no key that is {key_id}.") from None


def root_keys() -> RootKeys:
    """Those of the settings. Raises BadSetting, RootKeyUnavailable."""
    return read_root_keys(tuple(settings.ROOT_KEYS), settings.ROOT_SECRET)


@cache
def read_root_keys(names: tuple[str, ...], root_secret: bytes) -> RootKeys:
    """Raises BadSetting, RootKeyUnavailable."""
    if not names:
        raise BadSetting("CARET_ROOT_KEYS is empty; name a root key, such as root-secret.")
    return collect(_read(name, root_secret) for name in names)


def collect(keys: Iterable[RootKey]) -> RootKeys:
    """The first is the current one."""
    found = list(keys)
    return RootKeys(current=found[0], by_id={key.id: key for key in found})


def _read(name: str, root_secret: bytes) -> RootKey:
    kind, _, place = name.partition(":")
    if name == "root-secret":
        return SecretRootKey(root_secret)
    if kind == "file" and place:
        return SecretRootKey(_read_file(Path(place)))
    if kind == "kms" and place:
        return _kms_root_key(place)
    raise BadSetting(
        f"CARET_ROOT_KEYS names {name!r}; write root-secret, file:PATH or kms:KEY, with commas"
        " between them."
    )


def _read_file(file: Path) -> bytes:
    try:
        secret = bytes.fromhex(file.read_text().strip())
    except OSError as error:
        raise BadSetting(f"CARET_ROOT_KEYS: the root key cannot be read: {error}.") from error
    except ValueError:
        secret = b""
    if len(secret) != KEY_BYTES:
        raise BadSetting(f"CARET_ROOT_KEYS: {file} must hold 64 hex digits (32 random bytes).")
    return secret


def _kms_root_key(name: str) -> RootKey:
    try:
        # Imported here: boto3 is an extra, and takes half a second.
        from tenants.security.encryption.aws_kms import open_kms_root_key
    except ImportError as error:
        raise BadSetting(
            "CARET_ROOT_KEYS names a KMS key: install Caret with the extra `kms`."
        ) from error
    return open_kms_root_key(name)
