"""Verification of ID tokens (OpenID Connect Core 1.0, section 3.1.3.7).

This module knows neither HTTP requests nor accounts.
"""

from typing import Any, Final

import jwt
from allauth.socialaccount.providers.oauth2.client import OAuth2Error

from tenants.base.validation.text import is_storable

# Asymmetric algorithms only: with HS256, anybody could sign tokens with the public key.
ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
REQUIRED_CLAIMS: Final = ("iss", "sub", "aud", "exp", "iat")
CLOCK_SKEW_S: Final = 60
# Reasons in the audit log.
_REASONS: Final[dict[type[jwt.PyJWTError], str]] = {
    jwt.ExpiredSignatureError: "token_expired",
    jwt.ImmatureSignatureError: "token_from_the_future",
    jwt.InvalidAudienceError: "wrong_audience",
    jwt.InvalidIssuerError: "wrong_issuer",
    jwt.InvalidSignatureError: "invalid_signature",
}


class ProviderResponseRejected(OAuth2Error):  # type: ignore[misc]  # allauth has no types
    """We do not accept the response of an identity provider."""

    def __init__(self, reason: str, detail: str = "") -> None:
        """Store `reason`, a short fixed text for the audit log, and `detail` for the process log.

        `detail` may quote the response.
        """
        super().__init__(reason)
        self.reason = reason
        self.detail = detail


def require_algorithm(id_token: str) -> str:
    """Return the signature algorithm that the token's header names.

    Needs no public key. Raises ProviderResponseRejected, also for an algorithm that is not one of
    ALGORITHMS.
    """
    try:
        algorithm = jwt.get_unverified_header(id_token).get("alg")
    except jwt.PyJWTError as error:
        raise ProviderResponseRejected("malformed", str(error)) from error
    if algorithm not in ALGORITHMS:
        raise ProviderResponseRejected("algorithm_not_allowed", str(algorithm))
    return str(algorithm)


def verify_id_token(
    id_token: str, public_key: Any, *, algorithm: str, issuer: str, client_id: str
) -> dict[str, Any]:
    """Verify signature and claims, and return the claims. Raises ProviderResponseRejected."""
    try:
        claims: dict[str, Any] = jwt.decode(
            id_token,
            key=public_key,
            algorithms=[algorithm],
            issuer=issuer,
            audience=client_id,
            leeway=CLOCK_SKEW_S,
            options={"require": list(REQUIRED_CLAIMS)},
        )
    except jwt.MissingRequiredClaimError as error:
        raise ProviderResponseRejected(f"missing_claim_{error.claim}") from error
    except jwt.PyJWTError as error:
        reason = _REASONS.get(type(error), "invalid_token")
        raise ProviderResponseRejected(reason, f"{type(error).__name__}: {error}") from error
    _require_authorized_party(claims, client_id)
    if not is_storable(str(claims["sub"])):  # allauth looks the subject up in Postgres
        raise ProviderResponseRejected("malformed", "The subject cannot be stored.")
    return claims


def _require_authorized_party(claims: dict[str, Any], client_id: str) -> None:
    """Require that this client, and no other, requested the token.

    Raises ProviderResponseRejected.
    """
    audiences, authorized_party = claims["aud"], claims.get("azp")
    # A token for further audiences must name the client that requested it.
    if authorized_party is None and isinstance(audiences, list) and set(audiences) != {client_id}:
        raise ProviderResponseRejected("missing_claim_azp")
    if authorized_party is not None and authorized_party != client_id:
        raise ProviderResponseRejected("wrong_authorized_party")
