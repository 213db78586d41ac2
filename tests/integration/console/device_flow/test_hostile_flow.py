"""Hostile requests to the endpoints and the page of the device flow."""

from urllib.parse import urlencode

import pytest

from tests.fakes.console_client import Client
from tests.fixtures.companies import Company, make_key
from tests.integration.console.device_flow.editor import (
    FORM,
    GRANT,
    START,
    Editor,
    decide,
    page_of,
)


def test_an_anonymous_visitor_signs_in_first(editor: Editor) -> None:
    editor.start()

    answer = page_of(Client(), editor.user_code)

    assert answer["Location"] == f"/sign-in?next=/device%3Fcode%3D{editor.user_code}"


def test_the_confirmation_needs_a_csrf_token(company: Company, ada: Client, editor: Editor) -> None:
    editor.start()
    page_of(ada, editor.user_code)
    ada.handler.enforce_csrf_checks = True

    assert decide(ada, company, editor.user_code).status_code == 403


@pytest.mark.parametrize(
    ("path", "fields", "error"),
    [
        ("/oauth/device_authorization", {}, "invalid_request"),
        ("/oauth/device_authorization", {"client_id": "other"}, "invalid_request"),
        ("/oauth/device_authorization", {"client_id": "caret-ls", "editor": ""}, "invalid_request"),
        (
            "/oauth/device_authorization",
            {"client_id": "caret-ls", "machine": "x" * 56},
            "invalid_request",
        ),
        (
            "/oauth/device_authorization",
            {"client_id": "caret-ls", "machine": "a\u202eb"},
            "invalid_request",
        ),
        ("/oauth/token", {}, "invalid_request"),
        ("/oauth/token", {"grant_type": "password"}, "unsupported_grant_type"),
        ("/oauth/token", {"grant_type": "GRANT", "client_id": "other"}, "invalid_client"),
        ("/oauth/token", {"grant_type": "GRANT", "client_id": "caret-ls"}, "invalid_request"),
        (
            "/oauth/token",
            {"grant_type": "GRANT", "client_id": "caret-ls", "device_code": "x\0y"},
            "invalid_grant",
        ),
    ],
)
def test_a_wrong_request_gets_the_errors_of_the_rfc(
    editor: Editor, path: str, fields: dict[str, str], error: str
) -> None:
    parameters = {name: GRANT if value == "GRANT" else value for name, value in fields.items()}

    answer = editor.post(path, parameters)

    assert answer.status_code == (401 if error == "invalid_client" else 400)
    assert answer.json()["error"] == error
    assert answer["Content-Type"] == "application/json"


@pytest.mark.parametrize("path", ["/oauth/device_authorization", "/oauth/token"])
def test_other_bodies_are_refused(editor: Editor, path: str) -> None:
    bodies: list[tuple[str | bytes, str, int]] = [
        ('{"client_id": "caret-ls"}', "application/json", 400),
        ("{", "application/json", 400),
        (b"\xff\xfe", FORM, 400),
        ("client_id=caret-ls&client_id=caret-ls", FORM, 400),
        ("a&" * 2_000, FORM, 400),
        ("a" * 9_000, FORM, 413),
        ("a" * 2_000_000, FORM, 413),
    ]

    for body, content_type, status in bodies:
        answer = editor.send(path, body, content_type)
        assert (answer.status_code, answer.json()["error"]) == (status, "invalid_request")


def test_only_posts_are_answered() -> None:
    assert Client().get("/oauth/token").status_code == 405


@pytest.mark.parametrize("has_key", [True, False])
def test_an_api_key_makes_no_difference(company: Company, editor: Editor, *, has_key: bool) -> None:
    text = make_key(company, company.developer).text if has_key else "cpk_live_wrong"
    headers = {"Authorization": f"Bearer {text}"}
    body = urlencode(START)

    answer = editor.send("/oauth/device_authorization", body, **headers)

    assert answer.status_code == 200
