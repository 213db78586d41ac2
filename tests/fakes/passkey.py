"""A passkey in software: the responses of an authenticator and a browser (WebAuthn level 2).

It signs with its own key.
"""

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
_PRESENT, _VERIFIED, _ATTESTED = 0x01, 0x04, 0x40


@dataclass
class SoftPasskey:
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )
    id: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    user: bytes = b""  # the user handle from the challenge that created the passkey
    knows_its_user: bool = True  # verified by a fingerprint or a PIN; False: any touch is enough
    origin: str = ORIGIN

    def create(self, question: dict[str, Any]) -> dict[str, Any]:
        options = question["publicKey"]
        self.user = _bytes(options["user"]["id"])
        numbers = self.key.public_key().public_numbers()
        public = {1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32), -3: numbers.y.to_bytes(32)}
        attested = bytes(16) + len(self.id).to_bytes(2) + self.id + cbor.encode(public)
        data = self._data(options["rp"]["id"], _ATTESTED) + attested
        response = {
            "clientDataJSON": _text(self._client_data("webauthn.create", options)),
            "attestationObject": _text(
                cbor.encode({"fmt": "none", "attStmt": {}, "authData": data})
            ),
        }
        return self._answer(response) | {
            "clientExtensionResults": {"credProps": {"rk": self.knows_its_user}}
        }

    def get(self, question: dict[str, Any]) -> dict[str, Any]:
        options = question["publicKey"]
        data = self._data(options["rpId"])
        client_data = self._client_data("webauthn.get", options)
        signed = data + hashlib.sha256(client_data).digest()
        return self._answer(
            {
                "clientDataJSON": _text(client_data),
                "authenticatorData": _text(data),
                "signature": _text(self.key.sign(signed, ec.ECDSA(hashes.SHA256()))),
                "userHandle": _text(self.user),
            }
        )

    def _data(self, party: str, flags: int = 0) -> bytes:
        flags |= _PRESENT | (_VERIFIED if self.knows_its_user else 0)
        return hashlib.sha256(party.encode()).digest() + bytes([flags]) + bytes(4)

    def _client_data(self, kind: str, options: dict[str, Any]) -> bytes:
        message = {"type": kind, "challenge": options["challenge"], "origin": self.origin}
        return json.dumps(message).encode()

    def _answer(self, response: dict[str, str]) -> dict[str, Any]:
        name = _text(self.id)
        return {"id": name, "rawId": name, "type": "public-key", "response": response}


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
