"""Verification of OpenID Connect ID tokens (Core 1.0, 3.1.3.7).

This module knows neither requests nor accounts.
"""

from typing import Any, Final

import jwt
from allauth.socialaccount.providers.oauth2.client import OAuth2Error

from tenants.base.validation.text import is_storable

# Asymmetric algorithms only: with HS256, the public key itself could sign tokens.
ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
REQUIRED_CLAIMS: Final = ("iss", "sub", "aud", "exp", "iat")
CLOCK_SKEW_S: Final = 60
_REASONS: Final[dict[type[jwt.PyJWTError], str]] = {
    jwt.ExpiredSignatureError: "token_expired",
    jwt.ImmatureSignatureError: "token_from_the_future",
    jwt.InvalidAudienceError: "wrong_audience",
    jwt.InvalidIssuerError: "wrong_issuer",
    jwt.InvalidSignatureError: "invalid_signature",
}


class ProviderRefused(OAuth2Error):  # type: ignore[misc]  # allauth has no types
    """A provider's response is not accepted."""

    def __init__(self, reason: str, detail: str = "") -> None:
        """Store the `reason`, one of a fixed set, for the audit log.

        `detail` is only for the process log.
        """
        super().__init__(reason)
        self.reason = reason
        self.detail = detail


def require_algorithm(id_token: str) -> str:
    """Return the header's algorithm, checked before a key is fetched. Raises ProviderRefused."""
    try:
        algorithm = jwt.get_unverified_header(id_token).get("alg")
    except jwt.PyJWTError as error:
        raise ProviderRefused("malformed", str(error)) from error
    if algorithm not in ALGORITHMS:
        raise ProviderRefused("algorithm_not_allowed", str(algorithm))
    return str(algorithm)


def verify_claims(
    id_token: str, key: Any, *, algorithm: str, issuer: str, client_id: str
) -> dict[str, Any]:
    """Return the claims of a valid token. `key` is a public key. Raises ProviderRefused."""
    try:
        claims: dict[str, Any] = jwt.decode(
            id_token,
            key=key,
            algorithms=[algorithm],
            issuer=issuer,
            audience=client_id,
            leeway=CLOCK_SKEW_S,
            options={"require": list(REQUIRED_CLAIMS)},
        )
    except jwt.MissingRequiredClaimError as error:
        raise ProviderRefused(f"missing_claim_{error.claim}") from error
    except jwt.PyJWTError as error:
        reason = _REASONS.get(type(error), "invalid_token")
        raise ProviderRefused(reason, f"{type(error).__name__}: {error}") from error
    _require_authorized_party(claims, client_id)
    if not is_storable(str(claims["sub"])):  # allauth looks it up in Postgres
        raise ProviderRefused("malformed", "The subject cannot be stored.")
    return claims


def _require_authorized_party(claims: dict[str, Any], client_id: str) -> None:
    """Require that no other client requested the token. Raises ProviderRefused."""
    audiences, authorized_party = claims["aud"], claims.get("azp")
    if authorized_party is None and isinstance(audiences, list) and set(audiences) != {client_id}:
        raise ProviderRefused("missing_claim_azp")
    if authorized_party is not None and authorized_party != client_id:
        raise ProviderRefused("wrong_authorized_party")
