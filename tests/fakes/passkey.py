"""A passkey in software: the responses of an authenticator and a browser (WebAuthn level 2)."""

import hashlib
import json
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from typing import Any, Final

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from fido2 import cbor

ORIGIN: Final = "http://localhost"
# Flags of the authenticator data: user present, user verified, new key included.
_PRESENT, _VERIFIED, _ATTESTED = 0x01, 0x04, 0x40


@dataclass
class SoftPasskey:
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )
    id: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    user: bytes = b""  # the user handle from the challenge that created the passkey
    verifies_user: bool = True  # by a fingerprint or a PIN; False: a touch is enough
    origin: str = ORIGIN

    def create(self, challenge: dict[str, Any]) -> dict[str, Any]:
        """Return the browser's result of `navigator.credentials.create`: a new passkey."""
        options = challenge["publicKey"]
        self.user = _decode_base64(options["user"]["id"])
        point = self.key.public_key().public_numbers()
        # A COSE key (RFC 9053): type EC2, algorithm ES256, curve P-256, and the point.
        public_key = {1: 2, 3: -7, -1: 1, -2: point.x.to_bytes(32), -3: point.y.to_bytes(32)}
        no_model = bytes(16)  # the AAGUID of an authenticator that does not name its model
        # The ID is preceded by its length in two bytes.
        attested = no_model + len(self.id).to_bytes(2) + self.id + cbor.encode(public_key)
        data = self._authenticator_data(options["rp"]["id"], _ATTESTED) + attested
        response = {
            "clientDataJSON": _encode_base64(self._client_data("webauthn.create", options)),
            "attestationObject": _encode_base64(
                cbor.encode({"fmt": "none", "attStmt": {}, "authData": data})
            ),
        }
        # rk: "resident key", a passkey that is found without a user name. This authenticator stores
        # one only if it verifies its user.
        return self._credential(response) | {
            "clientExtensionResults": {"credProps": {"rk": self.verifies_user}}
        }

    def get(self, challenge: dict[str, Any]) -> dict[str, Any]:
        """Return the browser's result of `navigator.credentials.get`: a signed challenge."""
        options = challenge["publicKey"]
        data = self._authenticator_data(options["rpId"])
        client_data = self._client_data("webauthn.get", options)
        signed = data + hashlib.sha256(client_data).digest()
        return self._credential(
            {
                "clientDataJSON": _encode_base64(client_data),
                "authenticatorData": _encode_base64(data),
                "signature": _encode_base64(self.key.sign(signed, ec.ECDSA(hashes.SHA256()))),
                "userHandle": _encode_base64(self.user),
            }
        )

    def _authenticator_data(self, relying_party: str, flags: int = 0) -> bytes:
        flags |= _PRESENT | (_VERIFIED if self.verifies_user else 0)
        no_counter = bytes(4)  # this authenticator does not count its signatures
        return hashlib.sha256(relying_party.encode()).digest() + bytes([flags]) + no_counter

    def _client_data(self, kind: str, options: dict[str, Any]) -> bytes:
        message = {"type": kind, "challenge": options["challenge"], "origin": self.origin}
        return json.dumps(message).encode()

    def _credential(self, response: dict[str, str]) -> dict[str, Any]:
        name = _encode_base64(self.id)
        return {"id": name, "rawId": name, "type": "public-key", "response": response}


def _encode_base64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode_base64(encoded: str) -> bytes:
    return urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
