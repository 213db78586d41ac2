"""The device flow's endpoints and page refuse malformed and unauthorized requests."""

from urllib.parse import urlencode

import pytest

from tests.fakes.console_client import Client
from tests.fixtures.companies import Company, make_key
from tests.integration.console.device_flow.editor import (
    DEVICE_CODE_GRANT,
    FORM_TYPE,
    START_FIELDS,
    Editor,
    open_page,
    post_decision,
)


def test_an_anonymous_visitor_is_redirected_to_sign_in(editor: Editor) -> None:
    editor.start()

    response = open_page(Client(), editor.user_code)

    assert response["Location"] == f"/sign-in?next=/device%3Fcode%3D{editor.user_code}"


def test_the_confirmation_needs_a_csrf_token(company: Company, ada: Client, editor: Editor) -> None:
    editor.start()
    open_page(ada, editor.user_code)
    ada.handler.enforce_csrf_checks = True

    assert post_decision(ada, company, editor.user_code).status_code == 403


@pytest.mark.parametrize(
    ("path", "fields", "error"),
    [
        ("/oauth/device_authorization", {}, "invalid_request"),
        ("/oauth/device_authorization", {"client_id": "other"}, "invalid_request"),
        ("/oauth/device_authorization", {"client_id": "caret-ls", "editor": ""}, "invalid_request"),
        (
            "/oauth/device_authorization",
            {"client_id": "caret-ls", "machine": "x" * 56},  # one character too long
            "invalid_request",
        ),
        (
            "/oauth/device_authorization",
            {"client_id": "caret-ls", "machine": "a\u202eb"},  # reverses the text after it
            "invalid_request",
        ),
        ("/oauth/token", {}, "invalid_request"),
        ("/oauth/token", {"grant_type": "password"}, "unsupported_grant_type"),
        ("/oauth/token", {"grant_type": DEVICE_CODE_GRANT, "client_id": "other"}, "invalid_client"),
        (
            "/oauth/token",
            {"grant_type": DEVICE_CODE_GRANT, "client_id": "caret-ls"},
            "invalid_request",
        ),
        (
            "/oauth/token",
            {"grant_type": DEVICE_CODE_GRANT, "client_id": "caret-ls", "device_code": "x\0y"},
            "invalid_grant",
        ),
    ],
)
def test_an_invalid_request_gets_the_standard_oauth_error(
    editor: Editor, path: str, fields: dict[str, str], error: str
) -> None:
    response = editor.post(path, fields)

    assert response.status_code == (401 if error == "invalid_client" else 400)
    assert response.json()["error"] == error
    assert response["Content-Type"] == "application/json"


@pytest.mark.parametrize(
    ("path", "fields", "unique_field"),
    [
        ("/oauth/device_authorization", START_FIELDS, "client_id=caret-ls"),
        (
            "/oauth/token",
            {"grant_type": DEVICE_CODE_GRANT, "client_id": "caret-ls", "device_code": "unknown"},
            f"grant_type={DEVICE_CODE_GRANT}",
        ),
    ],
)
def test_a_malformed_or_oversized_body_is_refused(
    editor: Editor, path: str, fields: dict[str, str], unique_field: str
) -> None:
    valid = urlencode(fields)
    bodies: list[tuple[str | bytes, str, int]] = [  # body, content type, expected status
        (valid, "application/json", 400),
        ("{", "application/json", 400),
        (valid.encode() + b"&more=\xff\xfe", FORM_TYPE, 400),  # not UTF-8
        (f"{valid}&{unique_field}", FORM_TYPE, 400),  # the field occurs twice
        ("a&" * 2_000, FORM_TYPE, 400),  # too many fields
        ("a" * 9_000, FORM_TYPE, 413),  # more than 8 KiB
        ("a" * 2_000_000, FORM_TYPE, 413),  # more than Django reads
    ]

    # The valid body is well-formed. Its device code may still be unknown.
    valid_response = editor.send(path, valid)
    assert valid_response.json().get("error") != "invalid_request"
    for body, content_type, status in bodies:
        response = editor.send(path, body, content_type)
        assert (response.status_code, response.json()["error"]) == (status, "invalid_request")


def test_a_token_cannot_be_requested_by_get() -> None:
    assert Client().get("/oauth/token").status_code == 405


@pytest.mark.parametrize("is_key_valid", [True, False])
def test_an_api_key_in_the_request_is_ignored(
    company: Company, editor: Editor, *, is_key_valid: bool
) -> None:
    key_text = make_key(company, company.developer).text if is_key_valid else "cpk_live_wrong"
    headers = {"Authorization": f"Bearer {key_text}"}
    body = urlencode(START_FIELDS)

    response = editor.send("/oauth/device_authorization", body, **headers)

    assert response.status_code == 200
