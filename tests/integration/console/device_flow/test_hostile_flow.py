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

    answer = open_page(Client(), editor.user_code)

    assert answer["Location"] == f"/sign-in?next=/device%3Fcode%3D{editor.user_code}"


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
    answer = editor.post(path, fields)

    assert answer.status_code == (401 if error == "invalid_client" else 400)
    assert answer.json()["error"] == error
    assert answer["Content-Type"] == "application/json"


@pytest.mark.parametrize("path", ["/oauth/device_authorization", "/oauth/token"])
def test_a_malformed_or_oversized_body_is_refused(editor: Editor, path: str) -> None:
    bodies: list[tuple[str | bytes, str, int]] = [
        ('{"client_id": "caret-ls"}', "application/json", 400),
        ("{", "application/json", 400),
        (b"\xff\xfe", FORM_TYPE, 400),
        ("client_id=caret-ls&client_id=caret-ls", FORM_TYPE, 400),
        ("a&" * 2_000, FORM_TYPE, 400),
        ("a" * 9_000, FORM_TYPE, 413),
        ("a" * 2_000_000, FORM_TYPE, 413),
    ]

    for body, content_type, status in bodies:
        answer = editor.send(path, body, content_type)
        assert (answer.status_code, answer.json()["error"]) == (status, "invalid_request")


def test_a_token_cannot_be_requested_by_get() -> None:
    assert Client().get("/oauth/token").status_code == 405


@pytest.mark.parametrize("is_key_valid", [True, False])
def test_an_api_key_in_the_request_is_ignored(
    company: Company, editor: Editor, *, is_key_valid: bool
) -> None:
    text = make_key(company, company.developer).text if is_key_valid else "cpk_live_wrong"
    headers = {"Authorization": f"Bearer {text}"}
    body = urlencode(START_FIELDS)

    answer = editor.send("/oauth/device_authorization", body, **headers)

    assert answer.status_code == 200
