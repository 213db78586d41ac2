"""A hostile identity provider delays no other tenant and signs nobody in with invalid tokens."""

import base64
import hmac
import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization

from console.limits.outbound_limit import OUTBOUND_LIMIT
from console.sign_in.sso.egress_session import BOUNDS
from tenants.base import redis_connection
from tenants.base.permissions import Role
from tenants.identity.sso.operations import MAX_REFUSED_ENTRIES
from tests.fixtures.companies import Company, Person, make_company
from tests.fixtures.users import make_domain
from tests.integration.sign_in.by_provider import (
    configure_provider,
    fresh_client,
    is_signed_in,
    provider_url,
    refusals_of,
    sign_in_through,
)
from tests.integration.sign_in.openid_provider import ABSENT, CLIENT_ID, OpenIdProvider

CONFIGURATION = "/.well-known/openid-configuration"
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"


def send_dripping_body() -> Iterator[bytes]:
    yield OK
    while True:
        time.sleep(0.05)
        yield b" "


def send_endless_body() -> Iterator[bytes]:
    yield OK
    while True:
        yield b" " * 65_536


def request_sign_in(owner: Person) -> Any:
    return fresh_client().post("/sign-in", {"email": owner.email, "single": "yes"})


def test_a_slow_provider_times_out(owner: Person, provider: OpenIdProvider) -> None:
    provider.raw = {CONFIGURATION: send_dripping_body}
    began_s = time.monotonic()

    response = request_sign_in(owner)

    assert response.status_code == 503
    assert time.monotonic() - began_s < 20 * BOUNDS.total_s  # 20 times, for a busy machine


@pytest.mark.parametrize(
    "raw_response",
    [
        send_endless_body,
        lambda: [b"HTTP/1.1 200 OK\r\n\r\n[]"],
        lambda: [OK, b'["access_token"]'],
        lambda: [b"HTTP/1.1 200 OK\r\n\r\n", b"[" * 100_000],
        lambda: [b"HTTP/1.1 200 OK\r\n\r\n{}"],
        lambda: [b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\n\r\n"],
    ],
    ids=["endless", "a list", "a list of a word", "a deep list", "an empty object", "a redirect"],
)
@pytest.mark.parametrize("path", [CONFIGURATION, "/token", "/keys"])
def test_an_invalid_provider_response_is_rejected(
    owner: Person, provider: OpenIdProvider, path: str, raw_response: Callable[[], Iterable[bytes]]
) -> None:
    client = fresh_client()
    redirect_url = provider.authorize(provider_url(client, owner.email))
    provider.claims, provider.raw = {"email": owner.email}, {path: raw_response}

    response = client.get(redirect_url)

    assert response.status_code == 403
    assert not is_signed_in(client)


def test_a_redirect_by_the_provider_is_not_followed(
    owner: Person, provider: OpenIdProvider
) -> None:
    requested_paths: list[str] = []

    def serve_redirect_target() -> list[bytes]:
        requested_paths.append("/elsewhere")
        return [OK, b"{}"]

    redirect = b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\n\r\n"
    provider.raw = {CONFIGURATION: lambda: [redirect], "/elsewhere": serve_redirect_target}

    response = request_sign_in(owner)

    assert response.status_code == 503
    assert requested_paths == []


def test_each_tenant_has_a_limit_of_concurrent_provider_requests(
    company: Company, owner: Person, provider: OpenIdProvider
) -> None:
    other_company = make_company("hooli", {Role.OWNER: "hank"})
    make_domain(other_company, f"{other_company.slug}.example", verified=True)
    configure_provider(other_company, provider)

    with ExitStack() as held_slots:
        for _ in range(8):  # the limit of one tenant
            held_slots.enter_context(OUTBOUND_LIMIT.acquire(company.tenant_id))
        refusal = request_sign_in(owner)
        accepted = request_sign_in(other_company.people[Role.OWNER])

    assert (refusal.status_code, refusal["Retry-After"]) == (503, "5")
    assert accepted.status_code == 200
    assert request_sign_in(owner).status_code == 200


@pytest.mark.parametrize("local_part", ["a\0b", "a b", "a" * 300, "", "a\nb"])
def test_a_provider_cannot_create_an_account_with_an_invalid_address(
    company: Company, owner: Person, provider: OpenIdProvider, local_part: str
) -> None:
    client = fresh_client()
    redirect_url = provider.authorize(provider_url(client, owner.email))
    provider.claims = {"email": f"{local_part}@{company.slug}.example", "name": "a\0"}

    assert client.get(redirect_url).status_code == 403


def redis_keys() -> set[bytes]:
    return set(redis_connection.connect_to_redis().scan_iter())


def test_a_large_token_does_not_fill_redis(owner: Person, provider: OpenIdProvider) -> None:
    """Valkey evicts nothing, so Redis keys that contain tokens could fill its memory."""
    client = fresh_client()
    keys_before = redis_keys()

    sign_in_through(client, provider, owner.email, jti="j" * 180_000, exp=int(time.time()) + 10**9)

    assert is_signed_in(client)
    # The new Redis keys are counters of sign-in attempts. None contains the token's `jti`.
    assert all(len(name) < 200 for name in redis_keys() - keys_before)


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": 1e30, "jti": "j"},
        {"exp": float("inf"), "jti": "j"},
        {"exp": "soon", "jti": "j"},
        {"sub": "a\0b"},
        {"sub": "\ud800"},
        {"sub": "s" * 300},
        {"sub": ["a"]},
        {"sub": None},
        {"email": ["a"]},
        {"email": "\ud800@x.example"},
        {"name": {"a": 1}},
        {"name": "\ud800"},
        {"preferred_username": 1},
        {"jti": ["j"]},
    ],
)
def test_a_token_with_unusual_claims_causes_no_server_error(
    owner: Person, provider: OpenIdProvider, claims: dict[str, object]
) -> None:
    client = fresh_client()
    redirect_url = provider.authorize(provider_url(client, owner.email))
    provider.claims = {"email": owner.email} | claims

    response = client.get(redirect_url)

    assert response.status_code in (302, 403)


@pytest.mark.parametrize("lifetime", ["soon", float("inf"), 1e30, [1]])
def test_an_invalid_token_lifetime_is_refused(
    owner: Person, provider: OpenIdProvider, lifetime: object
) -> None:
    client = fresh_client()
    provider.extra_fields = {"expires_in": lifetime}

    response = sign_in_through(client, provider, owner.email)

    assert response.status_code == 403


SHARED = "a secret that the provider publishes as a key"


def sign_with_shared_secret(claims: dict[str, Any]) -> str:
    return jwt.encode(claims, SHARED, "HS256", headers={"kid": "k1"})


def leave_unsigned(claims: dict[str, Any]) -> str:
    return jwt.encode(claims, "", "none", headers={"kid": "k1"})


@pytest.mark.parametrize("sign", [sign_with_shared_secret, leave_unsigned])
def test_an_unsigned_or_symmetrically_signed_token_is_refused(
    company: Company,
    owner: Person,
    provider: OpenIdProvider,
    sign: Callable[[dict[str, Any]], str],
) -> None:
    secret = base64.urlsafe_b64encode(SHARED.encode()).rstrip(b"=").decode()
    provider.keys = [{"kty": "oct", "alg": "HS256", "kid": "k1", "k": secret}]
    provider.sign = sign
    client = fresh_client()

    response = sign_in_through(client, provider, owner.email)

    assert response.status_code == 403
    assert not is_signed_in(client)
    assert refusals_of(company) == ["algorithm_not_allowed"]


def test_a_token_signed_with_the_public_key_as_secret_is_refused(
    company: Company, owner: Person, provider: OpenIdProvider
) -> None:
    def sign(claims: dict[str, Any]) -> str:
        """Return a JWT whose HMAC has the provider's public key, which anybody knows, as secret."""
        pem = provider.key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        header = {"alg": "HS256", "kid": "k1"}
        parts = [base64.urlsafe_b64encode(json.dumps(part).encode()) for part in (header, claims)]
        signed_part = b".".join(part.rstrip(b"=") for part in parts)
        mac = base64.urlsafe_b64encode(hmac.digest(pem, signed_part, "sha256")).rstrip(b"=")
        return (signed_part + b"." + mac).decode()

    provider.sign = sign
    client = fresh_client()

    assert sign_in_through(client, provider, owner.email).status_code == 403
    assert not is_signed_in(client)
    assert refusals_of(company) == ["algorithm_not_allowed"]


@pytest.mark.parametrize("name", ["exp", "iat", "aud", "iss", "sub"])
def test_a_token_without_a_required_claim_is_refused(
    company: Company, owner: Person, provider: OpenIdProvider, name: str
) -> None:
    client = fresh_client()

    response = sign_in_through(client, provider, owner.email, **{name: ABSENT})

    assert response.status_code == 403
    assert not is_signed_in(client)
    assert refusals_of(company) == [f"missing_claim_{name}"]


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"aud": ["another"]}, "wrong_audience"),
        ({"aud": [CLIENT_ID, "another"]}, "missing_claim_azp"),
        ({"aud": [CLIENT_ID, "another"], "azp": "another"}, "wrong_authorized_party"),
        ({"exp": 1}, "token_expired"),
        ({"iat": 10**10}, "token_from_the_future"),
        ({"email_verified": False}, "address_not_verified"),
        ({"email": "somebody@elsewhere.example"}, "address_not_allowed"),
        ({"exp": float("inf")}, "invalid_token"),
    ],
    ids=str,
)
def test_a_refused_token_is_audited_with_its_reason(
    company: Company,
    owner: Person,
    provider: OpenIdProvider,
    claims: dict[str, Any],
    reason: str,
) -> None:
    client = fresh_client()
    redirect_url = provider.authorize(provider_url(client, owner.email))
    provider.claims = {"email": owner.email} | claims

    response = client.get(redirect_url)

    assert response.status_code == 403
    assert not is_signed_in(client)
    assert refusals_of(company) == [reason]


def test_an_unsolicited_code_is_audited(company: Company) -> None:
    address = f"/sign-in/provider/{company.tenant_id}"

    assert fresh_client().get(f"{address}?code=x&state=y").status_code == 403
    assert fresh_client().get(f"{address}?error=access_denied").status_code == 403
    assert refusals_of(company) == ["unsolicited", "access_denied"]


def test_the_number_of_audited_refusals_is_limited(company: Company) -> None:
    client = fresh_client()
    for _ in range(MAX_REFUSED_ENTRIES + 5):
        client.get(f"/sign-in/provider/{company.tenant_id}?code=x&state=y")

    assert len(refusals_of(company)) == MAX_REFUSED_ENTRIES
