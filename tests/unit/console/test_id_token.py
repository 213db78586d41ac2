"""ID tokens of OpenID Connect providers: accepted ones, and the reasons for rejecting others."""

import base64
import json
import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from console.sign_in.sso.id_token import (
    CLOCK_SKEW_S,
    REQUIRED_CLAIMS,
    ProviderResponseRejected,
    require_algorithm,
    verify_id_token,
)

ISSUER, CLIENT_ID = "https://login.example.com", "caret"


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def claims(**changes: Any) -> dict[str, Any]:
    """Return valid claims with these changes. A claim that is None is left out."""
    now = int(time.time())
    claim_values = {
        "iss": ISSUER,
        "aud": CLIENT_ID,
        "sub": "u1",
        "iat": now,
        "exp": now + 300,
    } | changes
    return {name: value for name, value in claim_values.items() if value is not None}


def verify_token(token: str, key: Any) -> dict[str, Any]:
    """Verify a token and return its claims.

    Raises ProviderResponseRejected.
    """
    algorithm = require_algorithm(token)
    return verify_id_token(token, key, algorithm=algorithm, issuer=ISSUER, client_id=CLIENT_ID)


def verify_claims(key: rsa.RSAPrivateKey, **changes: Any) -> dict[str, Any]:
    """Sign and verify claims.

    Raises ProviderResponseRejected.
    """
    return verify_token(jwt.encode(claims(**changes), key, "RS256"), key.public_key())


@pytest.mark.parametrize("algorithm", ["RS256", "RS512", "PS256"])
def test_a_token_signed_by_the_provider_is_accepted(key: rsa.RSAPrivateKey, algorithm: str) -> None:
    assert verify_token(jwt.encode(claims(), key, algorithm), key.public_key())["sub"] == "u1"


def test_a_token_signed_with_an_elliptic_curve_is_accepted() -> None:
    key = ec.generate_private_key(ec.SECP256R1())

    assert verify_token(jwt.encode(claims(), key, "ES256"), key.public_key())["sub"] == "u1"


def forge_token(algorithm: object, key: rsa.RSAPrivateKey) -> str:
    """Return a token of a kind that PyJWT refuses to write.

    Its header names the algorithm. Its signature is an HMAC with the public key as the secret.
    """
    pem = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    parts = [json.dumps(part).encode() for part in ({"alg": algorithm, "kid": "k1"}, claims())]
    signed = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts)
    mac = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(signed, pem)
    tail = b"" if algorithm == "none" else base64.urlsafe_b64encode(mac).rstrip(b"=")
    return (signed + b"." + tail).decode()


@pytest.mark.parametrize(
    "algorithm", ["HS256", "HS512", "none", "None", "RS1", "", None, 7, ["RS256"]]
)
def test_other_algorithms_are_rejected_before_a_key_is_fetched(
    key: rsa.RSAPrivateKey, algorithm: object
) -> None:
    """HS256 with the public key as the secret is the most important case."""
    with pytest.raises(ProviderResponseRejected) as exc_info:
        require_algorithm(forge_token(algorithm, key))

    assert exc_info.value.reason in {"algorithm_not_allowed", "malformed"}


@pytest.mark.parametrize("name", REQUIRED_CLAIMS)
def test_a_missing_claim_is_named(key: rsa.RSAPrivateKey, name: str) -> None:
    with pytest.raises(ProviderResponseRejected, match=f"missing_claim_{name}"):
        verify_claims(key, **{name: None})


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"iss": "https://evil.example"}, "wrong_issuer"),
        ({"aud": "another"}, "wrong_audience"),
        ({"aud": ["another", "third"]}, "wrong_audience"),
        ({"aud": []}, "missing_claim_aud"),
        ({"aud": {"caret": 1}}, "wrong_audience"),
        ({"aud": ["caret", "another"]}, "missing_claim_azp"),
        ({"aud": ["caret", "another"], "azp": "another"}, "wrong_authorized_party"),
        ({"azp": "another"}, "wrong_authorized_party"),
        ({"azp": ["caret"]}, "wrong_authorized_party"),
        ({"exp": "soon"}, "invalid_token"),
        ({"iat": "now"}, "invalid_token"),
        ({"sub": 7}, "invalid_token"),
        ({"sub": "a\0b"}, "malformed"),
    ],
    ids=str,
)
def test_a_token_with_a_wrong_claim_is_rejected(
    key: rsa.RSAPrivateKey, changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ProviderResponseRejected) as exc_info:
        verify_claims(key, **changes)

    assert exc_info.value.reason == reason


@pytest.mark.parametrize("changes", [{"aud": ["caret"]}, {"aud": ["caret", "x"], "azp": "caret"}])
def test_a_list_of_audiences_that_contains_our_client_is_accepted(
    key: rsa.RSAPrivateKey, changes: dict[str, Any]
) -> None:
    assert verify_claims(key, **changes)["sub"] == "u1"


def test_clocks_may_differ_by_a_minute_at_most(key: rsa.RSAPrivateKey) -> None:
    now = int(time.time())
    earliest, latest = now - CLOCK_SKEW_S, now + CLOCK_SKEW_S

    # Ten seconds are enough for the test to run.
    assert verify_claims(key, exp=earliest + 10)
    assert verify_claims(key, iat=latest - 10, nbf=latest - 10)
    for changes, reason in (
        ({"exp": earliest - 1}, "token_expired"),
        ({"iat": latest + 10}, "token_from_the_future"),
        ({"nbf": latest + 10}, "token_from_the_future"),
    ):
        with pytest.raises(ProviderResponseRejected, match=reason):
            verify_claims(key, **changes)


def test_a_token_signed_with_another_key_is_rejected(key: rsa.RSAPrivateKey) -> None:
    other_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    with pytest.raises(ProviderResponseRejected, match="invalid_signature"):
        verify_token(jwt.encode(claims(), other_key, "RS256"), key.public_key())


# The text "e30" is the encoded form of {}: a header that names no algorithm.
@pytest.mark.parametrize("token", ["", ".", "a.b.c", "é", "e30.e30.", "[" * 9_000])
def test_a_malformed_token_is_rejected(token: str) -> None:
    with pytest.raises(ProviderResponseRejected):
        require_algorithm(token)
