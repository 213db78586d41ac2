"""The installation's signatures: Ed25519, with keys derived from the root secret.

    keys = SigningKeys(root_secret, version=1)
    signature = keys.sign(data, purpose="deletion-certificate/1")
    verify(keys.public_keys(), data, signature, purpose="deletion-certificate/1")

1. The signed bytes are `caret/<purpose>`, a NUL, then the data. So a signature for one purpose is
   not valid for another.
2. Version n of the signing key is derived for the purpose "signing/<n>". The highest version signs.
   The public keys of lower versions stay published, so that old signatures can still be verified.
3. Verification uses public keys obtained beforehand, never keys from the verified file.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NewType

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from caret.foundation.crypto.canonical_json import canonicalize
from caret.foundation.crypto.key_derivation import derive_key

SigningKeyId = NewType("SigningKeyId", str)  # hex of the first 8 bytes of SHA-256 of the public key
_KEY_ID_BYTES: Final = 8
_HEX: Final = re.compile(r"(?:[0-9a-f]{2})+")


class BadSignature(Exception):
    """The signature is missing or invalid. The text gives the reason in English."""

    def __init__(self, wording: str, /, **values: object) -> None:
        """Format `wording` with `values`. Translations are found by the unformatted wording."""
        super().__init__(wording.format(**values) if values else wording)
        self.wording = wording
        self.values = values


class UnknownKey(BadSignature):
    """The key that signed is not in the list of public keys; it may be another installation's."""


class BadPublicKeys(Exception):
    """The file does not contain valid public keys. The text gives the reason."""


@dataclass(frozen=True, slots=True)
class Signature:
    key_id: SigningKeyId
    value: bytes  # 64 bytes


class PublicKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    key_id: SigningKeyId
    version: int  # from 1
    algorithm: str  # "Ed25519"
    public_key: str  # 32 bytes in lower-case hex, as in RFC 8032
    is_current: bool  # the key that signs now


class PublicKeys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keys as `/.well-known/caret-signing-keys.json` serves them."""

    keys: list[PublicKey]  # oldest first


class SigningKeys:
    """All versions of the signing key, up to the current one."""

    def __init__(self, root_secret: bytes, *, version: int) -> None:
        self._private_keys = [
            Ed25519PrivateKey.from_private_bytes(derive_key(root_secret, f"signing/{number}"))
            for number in range(1, version + 1)
        ]

    def sign(self, data: bytes, *, purpose: str) -> Signature:
        key = self._private_keys[-1]
        return Signature(_key_id(_raw_public_key(key)), key.sign(_bind_to_purpose(data, purpose)))

    def sign_document(self, document: Mapping[str, Any], *, purpose: str) -> dict[str, Any]:
        """Return the document with `key_id` and `signature` (hex).

        The signature covers the canonical JSON of the document with its `key_id`. Raises ValueError
        for values that RFC 8785 cannot represent.
        """
        key_id = _key_id(_raw_public_key(self._private_keys[-1]))
        content = {**document, "key_id": key_id}
        signature = self.sign(canonicalize(content), purpose=purpose)
        return {**content, "signature": signature.value.hex()}

    def public_keys(self) -> PublicKeys:
        raw_keys = [_raw_public_key(key) for key in self._private_keys]
        return PublicKeys(
            [
                PublicKey(_key_id(raw), version, "Ed25519", raw.hex(), version == len(raw_keys))
                for version, raw in enumerate(raw_keys, start=1)
            ]
        )


def verify(keys: PublicKeys, data: bytes, signature: Signature, *, purpose: str) -> None:
    """Verify a signature with the public keys.

    Raises UnknownKey, BadSignature.
    """
    public_key = next((key for key in keys.keys if key.key_id == signature.key_id), None)
    if public_key is None:
        raise UnknownKey(
            "it is signed with a key that is not in your list: {key_id}", key_id=signature.key_id
        )
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key.public_key))
        key.verify(signature.value, _bind_to_purpose(data, purpose))
    except InvalidSignature:
        raise BadSignature(
            "the signature of key {key_id} is not valid", key_id=signature.key_id
        ) from None


def verify_document(keys: PublicKeys, document: Mapping[str, Any], *, purpose: str) -> None:
    """Verify a document that `sign_document` returned.

    Raises UnknownKey, BadSignature.
    """
    content = {name: value for name, value in document.items() if name != "signature"}
    key_id, value = document.get("key_id"), document.get("signature")
    # Only lower-case hex is valid. Otherwise a letter could change its case unnoticed.
    if not isinstance(key_id, str) or not isinstance(value, str) or not _HEX.fullmatch(value):
        raise BadSignature("it is not signed")
    try:
        data = canonicalize(content)
    except ValueError as error:
        raise BadSignature(
            "it contains a number or text that signed documents never contain"
        ) from error
    signature = Signature(SigningKeyId(key_id), bytes.fromhex(value))
    verify(keys, data, signature, purpose=purpose)


def write_public_keys(keys: PublicKeys) -> str:
    """Return the text of a file that `read_public_keys` can parse."""
    return msgspec.json.format(msgspec.json.encode(keys), indent=2).decode() + "\n"


def read_public_keys(text: bytes) -> PublicKeys:
    """Parse the JSON text of a file, and check that each key ID matches its public key.

    Raises BadPublicKeys.
    """
    try:
        keys = msgspec.json.decode(text, type=PublicKeys)
        are_valid = all(_is_valid(key) for key in keys.keys)
    except (msgspec.MsgspecError, ValueError) as error:
        raise BadPublicKeys(f"This is not a file of public keys: {error}") from None
    if not keys.keys or not are_valid:
        raise BadPublicKeys(
            "This file has no keys, a key that is not Ed25519, or a key whose ID is wrong."
        )
    return keys


def _is_valid(key: PublicKey) -> bool:
    raw = bytes.fromhex(key.public_key)
    Ed25519PublicKey.from_public_bytes(raw)  # raises ValueError unless it has 32 bytes
    return key.algorithm == "Ed25519" and key.key_id == _key_id(raw)


def _raw_public_key(key: Ed25519PrivateKey) -> bytes:
    """Return the 32 bytes of the public key."""
    return key.public_key().public_bytes_raw()


def _key_id(raw: bytes) -> SigningKeyId:
    """Return the ID of a public key."""
    return SigningKeyId(hashlib.sha256(raw).digest()[:_KEY_ID_BYTES].hex())


def _bind_to_purpose(data: bytes, purpose: str) -> bytes:
    return b"caret/" + purpose.encode() + b"\0" + data
