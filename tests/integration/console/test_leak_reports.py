"""Secret scanners report leaked keys to the API, which revokes them and reveals nothing else."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.test import Client, override_settings
from django.utils import timezone

from caret.contracts.api_key import KeyKind, generate_key
from caret.foundation.environment import BadSetting
from console.api import rate_limit
from console.api.leak_report_auth import KEY_ID_HEADER, SIGNATURE_HEADER, load_github_keys
from tenants.base.redis_connection import connect_to_redis
from tenants.identity.api_keys.leak_reports import REPORT_QUEUE
from tenants.identity.api_keys.leak_response import process_leak_reports
from tenants.identity.api_keys.queries import KeyState, find_key
from tests.fixtures.companies import GLOBEX_PEOPLE, Company, make_company, make_key
from tests.integration.console.conftest import SignIn

SECRET = "not a very secret secret"
GITHUB_KEY = ec.generate_private_key(ec.SECP256R1())


def to_pem(public_key: PublicKeyTypes) -> str:
    return public_key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


RSA_PEM = to_pem(rsa.generate_private_key(public_exponent=65537, key_size=2048).public_key())
# A key of the type 1.2.3.4, which does not exist.
UNKNOWN_PEM = """-----BEGIN PUBLIC KEY-----
MAswBQYDKgMEAwIAAQ==
-----END PUBLIC KEY-----
"""


def write_github_keys(path: Path, *pems: str) -> Path:
    """Write a file with the public keys k1, k2 and so on."""
    entries = [
        {"key_identifier": f"k{number}", "key": pem, "is_current": True}
        for number, pem in enumerate(pems, start=1)
    ]
    path.write_text(json.dumps({"public_keys": entries}))
    return path


@pytest.fixture
def company() -> Company:
    return make_company("initech", GLOBEX_PEOPLE)


@pytest.fixture(autouse=True)
def _configured_scanners(tmp_path: Path) -> Iterator[None]:
    keys_file = write_github_keys(tmp_path / "keys.json", to_pem(GITHUB_KEY.public_key()))
    connect_to_redis().delete(REPORT_QUEUE)
    # The reports of earlier tests must not count against the rate limit.
    connect_to_redis().delete("caret:throttle:api:leaks:127.0.0.1")
    with override_settings(LEAK_REPORT_SECRET=SECRET, GITHUB_SCANNING_KEYS=str(keys_file)):
        yield


def report(body: object, *, secret: str | None = SECRET) -> Any:
    headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
    return Client(headers=headers).post(
        "/api/v1/leak-reports", json.dumps(body), content_type="application/json"
    )


def report_as_github(
    body: bytes, *, signed: bytes | None = None, key_id: str = "k1", signature: str | None = None
) -> Any:
    """Send a report that is signed with GitHub's key.

    `signed` replaces the signed text, which is the body otherwise. `signature` replaces the
    signature itself.
    """
    computed_signature = base64.b64encode(
        GITHUB_KEY.sign(signed or body, ec.ECDSA(SHA256()))
    ).decode()
    headers = {
        KEY_ID_HEADER: key_id,
        SIGNATURE_HEADER: computed_signature if signature is None else signature,
    }
    return Client(headers=headers).post(
        "/api/v1/leak-reports/github", body, content_type="application/json"
    )


def process_queued_reports() -> None:
    process_leak_reports(connect_to_redis(), now=timezone.now())


def is_revoked(company: Company, lookup_id: Any) -> bool:
    view = find_key(actor=company.platform, lookup_id=lookup_id, now=timezone.now())
    return view.state is KeyState.REVOKED


def test_a_reported_key_is_revoked(company: Company) -> None:
    created = make_key(company, company.developer)

    response = report({"texts": [f"key = '{created.text}'"], "place": "https://git.example.com"})

    assert response.status_code == 202
    process_queued_reports()
    assert is_revoked(company, created.key.lookup_id)


def test_the_response_does_not_reveal_whether_a_key_exists(company: Company) -> None:
    created = make_key(company, company.developer)
    forged = generate_key(KeyKind.DEVELOPER, lookup_id=created.key.lookup_id)

    answers = [report({"texts": [text]}) for text in (created.text, forged.text, "nothing")]

    assert len({(answer.status_code, answer.content) for answer in answers}) == 1


@pytest.mark.parametrize("secret", [None, "", "wrong", SECRET + "x", "Ä"])
def test_a_report_with_a_wrong_secret_is_refused(company: Company, secret: str | None) -> None:
    created = make_key(company, company.developer)

    response = report({"texts": [created.text]}, secret=secret)

    assert (response.status_code, response.json()["code"]) == (401, "unauthenticated")
    process_queued_reports()
    assert not is_revoked(company, created.key.lookup_id)


def test_reports_are_refused_if_no_secret_is_configured() -> None:
    with override_settings(LEAK_REPORT_SECRET=None, GITHUB_SCANNING_KEYS=None):
        assert report({"texts": ["x"]}, secret="").status_code == 401
        assert report({"texts": ["x"]}, secret="None").status_code == 401
        assert report_as_github(b"[]").status_code == 401


def test_an_administrators_session_cannot_report_leaks(company: Company, sign_in: SignIn) -> None:
    client = sign_in(company.administrator)

    response = client.post(
        "/api/v1/leak-reports", '{"texts":["x"]}', content_type="application/json"
    )

    assert response.status_code == 401


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "texts"),
        ({"texts": []}, "texts"),
        ({"texts": ["x"] * 101}, "texts"),
        ({"texts": ["x" * 10_001]}, "texts.0"),
        ({"texts": [1]}, "texts.0"),
        ({"texts": ["x"], "place": "x" * 2_001}, "place"),
        ({"texts": ["x"], "more": 1}, "more"),
    ],
)
def test_a_malformed_report_is_rejected_with_the_fields_name(body: object, field: str) -> None:
    response = report(body)

    assert (response.status_code, response.json()["field"]) == (422, field)


def test_reports_are_rate_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "MAX_PER_MINUTE", 1)

    answers = [report({"texts": ["x"]}).status_code for _ in range(2)]

    assert answers == [202, 429]


def test_a_report_signed_by_github_revokes_the_key(company: Company) -> None:
    created = make_key(company, company.developer)
    leaked_token = {
        "token": created.text,
        "type": "caret",
        "url": "https://github.com/a/b",
        "source": "c",
    }
    unknown_token = {"token": generate_key(KeyKind.TEST).text}

    response = report_as_github(json.dumps([unknown_token, leaked_token]).encode())

    assert response.status_code == 202
    process_queued_reports()
    assert is_revoked(company, created.key.lookup_id)


@pytest.mark.parametrize(
    "forgery",
    [
        {"signed": b"[]"},
        {"key_id": "k2"},
        {"key_id": ""},
        {"signature": ""},
        {"signature": "x"},
        {"signature": base64.b64encode(b"x" * 70).decode()},  # about as long as a real one
    ],
)
def test_a_report_with_an_invalid_github_signature_is_refused(
    company: Company, forgery: dict[str, Any]
) -> None:
    created = make_key(company, company.developer)

    response = report_as_github(json.dumps([{"token": created.text}]).encode(), **forgery)

    assert response.status_code == 401
    process_queued_reports()
    assert not is_revoked(company, created.key.lookup_id)


@pytest.mark.parametrize(
    ("pems", "message"),
    [
        ([], "contains no key for ECDSA"),
        ([RSA_PEM], "contains no key for ECDSA"),
        (["no PEM"], "cannot be read as a list of public keys"),
        ([UNKNOWN_PEM], "cannot be read as a list of public keys"),
    ],
    ids=["empty", "rsa", "malformed", "unknown type"],
)
def test_a_file_without_a_usable_github_key_is_a_wrong_setting(
    tmp_path: Path, pems: list[str], message: str
) -> None:
    path = write_github_keys(tmp_path / "wrong.json", *pems)

    with (
        override_settings(GITHUB_SCANNING_KEYS=str(path)),
        pytest.raises(BadSetting, match=message),
    ):
        load_github_keys()


def test_a_github_key_that_is_not_for_ecdsa_is_left_out(tmp_path: Path) -> None:
    path = write_github_keys(tmp_path / "mixed.json", RSA_PEM, to_pem(GITHUB_KEY.public_key()))

    with override_settings(GITHUB_SCANNING_KEYS=str(path)):
        assert list(load_github_keys()) == ["k2"]


@pytest.mark.parametrize("body", [b"{}", b'[{"token": 1}]', b"[{}]", b"[1]", b"x", b"\xff"])
def test_a_malformed_signed_report_is_rejected(body: bytes) -> None:
    assert report_as_github(body).status_code in (400, 422)
