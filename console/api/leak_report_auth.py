"""Authentication of leak reports: a shared secret for scanners, a signature for GitHub.

Scanners other than GitHub's send CARET_LEAK_REPORT_SECRET as `Authorization: Bearer`.

GitHub signs its reports. CARET_GITHUB_SECRET_SCANNING_KEYS names a file with GitHub's public keys,
as https://api.github.com/meta/public_keys/secret_scanning returns them. The operator downloads this
file, so that no report has to wait for a download.

If neither setting is set, all reports are refused.

Source: GitHub's secret scanning partner programme, "Implement signature verification".
"""

import binascii
import hmac
from base64 import b64decode
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from django.conf import settings
from django.http import HttpRequest

from caret.foundation.environment import BadSetting
from console.api.rate_limit import count_request
from console.sign_in.current_member import client_address

KEY_ID_HEADER: Final = "Github-Public-Key-Identifier"
SIGNATURE_HEADER: Final = "Github-Public-Key-Signature"
_BEARER: Final = "bearer"


class _PublicKey(msgspec.Struct, frozen=True):
    key_identifier: str
    key: str  # PEM


class _PublicKeys(msgspec.Struct, frozen=True):
    public_keys: tuple[_PublicKey, ...]


def authenticate_scanner(request: HttpRequest) -> bool | None:
    """Return True if the request has the shared secret, otherwise None.

    For None, django-ninja refuses the request.

    Counts the request for the rate limit of its IP address. Raises ProblemRaised if the address
    sends too many requests.
    """
    count_request(f"leaks:{client_address(request)}")
    scheme, _, presented_secret = request.headers.get("Authorization", "").partition(" ")
    secret = settings.LEAK_REPORT_SECRET or ""
    is_equal = hmac.compare_digest(presented_secret.strip().encode(), secret.encode())
    # If the setting is not set, an empty bearer token is equal, but must not be accepted.
    is_authentic = bool(secret) and is_equal and scheme.lower() == _BEARER
    return True if is_authentic else None


def authenticate_github(request: HttpRequest) -> bool | None:
    """Return True if GitHub signed the whole body, otherwise None.

    For None, django-ninja refuses the request.

    Counts the request for the rate limit of its IP address. Raises BadSetting, RequestDataTooBig,
    and ProblemRaised if the address sends too many requests.
    """
    count_request(f"leaks:{client_address(request)}")
    public_key = load_github_keys().get(request.headers.get(KEY_ID_HEADER, ""))
    signature = request.headers.get(SIGNATURE_HEADER, "")
    if public_key is None or not _is_signed(public_key, signature, request.body):
        return None
    return True


def load_github_keys() -> dict[str, EllipticCurvePublicKey]:
    """Return GitHub's public keys by their IDs; empty: the setting is not set. Raises BadSetting.

    The file is read once, so a new file needs a restart of the console.
    """
    path = settings.GITHUB_SCANNING_KEYS
    return {} if path is None else _read_public_keys(Path(path))


def _is_signed(public_key: EllipticCurvePublicKey, signature: str, body: bytes) -> bool:
    """Return whether `signature`, in base64, is a valid signature of the body."""
    try:
        public_key.verify(b64decode(signature, validate=True), body, ECDSA(SHA256()))
    except (InvalidSignature, binascii.Error, ValueError):
        return False
    return True


@lru_cache(maxsize=4)  # one file per process; more only in tests
def _read_public_keys(path: Path) -> dict[str, EllipticCurvePublicKey]:
    """Return GitHub's public keys by their IDs. Keys that are not for ECDSA are left out.

    Raises BadSetting if the file cannot be read or parsed, or has no key for ECDSA.
    """
    try:
        entries = msgspec.json.decode(path.read_bytes(), type=_PublicKeys).public_keys
        public_keys = {
            entry.key_identifier: load_pem_public_key(entry.key.encode()) for entry in entries
        }
    except (OSError, ValueError, UnsupportedAlgorithm, msgspec.MsgspecError) as error:
        raise BadSetting(
            f"CARET_GITHUB_SECRET_SCANNING_KEYS: {path} cannot be read as a list of public keys."
        ) from error
    ecdsa_keys = {
        key_id: public_key
        for key_id, public_key in public_keys.items()
        if isinstance(public_key, EllipticCurvePublicKey)  # GitHub signs with ECDSA
    }
    if not ecdsa_keys:
        raise BadSetting(f"CARET_GITHUB_SECRET_SCANNING_KEYS: {path} contains no key for ECDSA.")
    return ecdsa_keys
