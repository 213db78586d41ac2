"""Operators' second factor: one-time codes of an authenticator app (RFC 6238), each valid once."""

import secrets
from datetime import datetime
from typing import Final
from uuid import UUID

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from django.conf import settings

from caret.foundation.crypto.aead import seal, unseal
from caret.foundation.crypto.key_derivation import derive_key

STEP_S: Final = 30
_DIGITS: Final = 6
_SECRET_BYTES: Final = 20  # the length of a SHA-1 digest, as RFC 4226 recommends
_TOLERANCE: Final = 1  # steps before and after the current one, because clocks may be off


def generate_secret() -> bytes:
    return secrets.token_bytes(_SECRET_BYTES)


def seal_secret(secret: bytes, operator_id: UUID) -> bytes:
    """Encrypt a secret so that only `unseal_secret` with the same operator can decrypt it."""
    return seal(_derive_key(), secret, bound_to=_build_associated_data(operator_id))


def unseal_secret(data: bytes, operator_id: UUID) -> bytes:
    """Decrypt the result of `seal_secret`. Raises DecryptionFailed."""
    return unseal(_derive_key(), data, bound_to=_build_associated_data(operator_id))


def build_totp_uri(secret: bytes, handle: str) -> str:
    """Return the `otpauth://...` URI for authenticator apps."""
    return _make_totp(secret).get_provisioning_uri(handle, "Caret operators")


def compute_code(secret: bytes, step: int) -> str:
    """Return the code of a time step. Steps of STEP_S seconds are counted from the Unix epoch."""
    return _make_totp(secret).generate(step * STEP_S).decode()


def match_time_step(secret: bytes, code: str, *, now: datetime, after: int) -> int | None:
    """Return the time step of a code; None if the code is not valid now.

    The code of the current step is valid, and those of one step before and after it. `after` is the
    step of the last accepted code: codes of this step and of earlier steps are not valid.
    """
    current_step = int(now.timestamp()) // STEP_S
    steps = range(max(current_step - _TOLERANCE, after + 1), current_step + _TOLERANCE + 1)
    # Non-ASCII text cannot be compared in constant time, so both are compared as bytes.
    code_bytes = code.strip().encode("utf-8", "replace")
    matching_steps = [
        step
        for step in steps
        if secrets.compare_digest(compute_code(secret, step).encode(), code_bytes)
    ]
    return matching_steps[0] if matching_steps else None


def _make_totp(secret: bytes) -> TOTP:
    # Many authenticator apps support SHA-1 only, and one-time codes need no collision resistance.
    return TOTP(secret, _DIGITS, SHA1(), STEP_S)  # noqa: S303


def _derive_key() -> bytes:
    return derive_key(settings.ROOT_SECRET, "operators-second-factors/1")


def _build_associated_data(operator_id: UUID) -> bytes:
    return f"operator|{operator_id}".encode()
