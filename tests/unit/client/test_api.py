"""`caret GROUP COMMAND`, against a server that describes its operations in an OpenAPI document."""

import io
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from rich.console import Console

from caret.client.api import cli, http_client
from caret.client.api.cli import EXIT_REFUSED, EXIT_UNANSWERED, EXIT_USAGE, run
from caret.client.api.http_client import ApiClient, ApiError, ApiRequest, ServerUnreachable
from caret.client.api.openapi_operations import (
    ParameterType,
    UnsupportedApiDocument,
    read_operations,
)
from caret.client.api.output import print_response

DOCUMENT: dict[str, Any] = {
    "paths": {
        "/api/v1/keys": {
            "get": {
                "operationId": "keys.list",
                "summary": "List keys.",
                "parameters": [
                    {"in": "query", "name": "limit", "schema": {"type": "integer"}},
                    {"in": "query", "name": "only_idle", "schema": {"type": "boolean"}},
                    {
                        "in": "query",
                        "name": "cursor",
                        "schema": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                    },
                ],
            },
            "post": {
                "operationId": "keys.create",
                "summary": "Make a key.",
                "parameters": [
                    {"in": "header", "name": "Idempotency-Key", "schema": {"type": "string"}}
                ],
                "requestBody": {
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/KeyRequest"}}
                    }
                },
            },
        },
        "/api/v1/keys/{lookup_id}/revoke": {
            "post": {
                "operationId": "keys.revoke",
                "parameters": [
                    {
                        "in": "path",
                        "name": "lookup_id",
                        "required": True,
                        "schema": {"type": "string"},
                    }
                ],
            }
        },
        "/api/v1/report": {"get": {"operationId": "usage.get_report", "summary": "A table."}},
    },
    "components": {
        "schemas": {
            "Kind": {"type": "string", "enum": ["live", "svc"]},
            "KeyRequest": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string", "description": "What it is for, 100% free."},
                    "kind": {"allOf": [{"$ref": "#/components/schemas/Kind"}], "default": "live"},
                    "scopes": {"type": "array", "items": {"type": "string"}},
                    "limits": {"type": "object"},
                    "rate": {"type": "number"},
                    "is_test": {"type": "boolean"},
                },
            },
        }
    },
}


class Server:
    """Returns scripted responses, and records all requests but those for the OpenAPI document."""

    def __init__(self, *responses: httpx.Response | Exception) -> None:
        self.requests: list[httpx.Request] = []
        self._responses = list(responses)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/api/v1/openapi.json":
            return httpx.Response(200, json=DOCUMENT)
        self.requests.append(request)
        response = self._responses.pop(0)
        if isinstance(response, Exception):
            raise response
        return response

    def run(self, *argv: str, environment: dict[str, str] | None = None) -> int:
        default_environment = {
            "CARET_CONSOLE_URL": "http://caret.test",
            "CARET_SERVICE_KEY": "cpk_svc_x",
        }
        return run(argv, environment or default_environment, transport=httpx.MockTransport(self))


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the pause between two attempts."""
    monkeypatch.setattr(http_client, "_FIRST_PAUSE_S", 0.0)


def json_response(body: Any, status: int = 200) -> httpx.Response:
    return httpx.Response(status, json=body)


def test_a_command_calls_its_operation(capsys: pytest.CaptureFixture[str]) -> None:
    server = Server(json_response({"keys": [], "next_cursor": None}))

    assert server.run("keys", "list", "--limit", "5", "--only-idle", "yes") == 0

    (request,) = server.requests
    assert str(request.url) == "http://caret.test/api/v1/keys?limit=5&only_idle=true"
    assert request.headers["Authorization"] == "Bearer cpk_svc_x"
    assert json.loads(capsys.readouterr().out) == {"keys": [], "next_cursor": None}


def test_a_body_is_built_from_options() -> None:
    server = Server(json_response({}, 201))
    options = ("--name", "CI", "--kind", "svc", "--scopes", "a", "--scopes", "b", "--rate", "1.5")

    server.run("keys", "create", *options, "--limits", '{"x": 1}', "--is-test", "false")

    assert json.loads(server.requests[0].content) == {
        "name": "CI",
        "kind": "svc",
        "scopes": ["a", "b"],
        "rate": 1.5,
        "limits": {"x": 1},
        "is_test": False,
    }


def test_options_override_the_body_file(tmp_path: Path) -> None:
    file = tmp_path / "key.json"
    file.write_text('{"name": "CI", "kind": "svc"}')
    server = Server(json_response({}, 201))

    server.run("keys", "create", "--body", str(file), "--kind", "live")

    assert json.loads(server.requests[0].content) == {"name": "CI", "kind": "live"}


def test_path_arguments_are_escaped() -> None:
    server = Server(json_response({}))

    server.run("keys", "revoke", "../policy")

    assert server.requests[0].url.raw_path == b"/api/v1/keys/..%2Fpolicy/revoke"


@pytest.mark.parametrize("month", ["9999-12", "2026-13", "October", "2026-10-01", ""])
def test_an_invalid_month_is_rejected_with_an_example(
    month: str, capsys: pytest.CaptureFixture[str]
) -> None:
    server = Server()

    with pytest.raises(SystemExit) as exit_:
        server.run("export", "usage", "--month", month)  # a command that is not in DOCUMENT

    assert exit_.value.code == EXIT_USAGE
    assert "argument --month: write a month such as 2026-10" in capsys.readouterr().err
    assert server.requests == []


def test_the_option_all_requests_every_page(capsys: pytest.CaptureFixture[str]) -> None:
    server = Server(
        json_response({"keys": [], "next_cursor": "n"}),
        json_response({"keys": [], "next_cursor": None}),
    )

    server.run("keys", "list", "--all", "--limit", "1")

    assert [str(request.url.query, "ascii") for request in server.requests] == [
        "limit=1",
        "limit=1&cursor=n",
    ]
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_a_repeated_request_has_the_same_idempotency_key() -> None:
    server = Server(httpx.ReadTimeout("lost"), json_response({}, 201))

    assert server.run("keys", "create", "--name", "CI") == 0

    idempotency_keys = {request.headers["Idempotency-Key"] for request in server.requests}
    assert (len(server.requests), len(idempotency_keys)) == (2, 1)


def test_a_request_without_idempotency_key_is_not_repeated() -> None:
    server = Server(httpx.ReadTimeout("lost"))

    assert server.run("keys", "revoke", "abc") == EXIT_UNANSWERED
    assert len(server.requests) == 1


def test_retry_after_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    busy = httpx.Response(429, headers={"Retry-After": "7"}, json={"code": "x", "detail": "y"})
    server = Server(busy, json_response({}))
    client = ApiClient(
        "http://caret.test", key=None, sleep=pauses.append, transport=httpx.MockTransport(server)
    )

    client.request(ApiRequest("GET", "/api/v1/report"))

    assert pauses == [7.0]


def test_retries_are_limited(capsys: pytest.CaptureFixture[str]) -> None:
    server = Server(*[httpx.ConnectError("refused")] * (http_client.MAX_TRIES + 1))

    assert server.run("usage", "get-report") == EXIT_UNANSWERED
    assert len(server.requests) == http_client.MAX_TRIES
    assert "http://caret.test" in capsys.readouterr().err


def test_a_problem_is_printed_as_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    problem = {"code": "validation_failed", "detail": "Too long.", "field": "name"}
    server = Server(httpx.Response(422, json=problem))

    assert server.run("keys", "create", "--name", "x" * 999) == EXIT_REFUSED
    assert capsys.readouterr().err == "caret: name: Too long. (validation_failed)\n"


def test_an_error_without_a_problem_body_is_printed_with_its_status(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert Server(httpx.Response(418, text="teapot")).run("usage", "get-report") == EXIT_REFUSED
    assert "418" in capsys.readouterr().err


def test_a_redirect_is_not_followed() -> None:
    server = Server(httpx.Response(302, headers={"Location": "http://elsewhere.test/"}))

    assert server.run("usage", "get-report") == EXIT_REFUSED
    assert len(server.requests) == 1


def test_a_response_is_written_to_the_named_file(tmp_path: Path) -> None:
    file = tmp_path / "report.csv"
    server = Server(httpx.Response(200, text="day,requests\n"))

    server.run("--out", str(file), "usage", "get-report")

    assert file.read_text() == "day,requests\n"


def test_all_pages_are_written_to_the_named_file(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_text("the result of an earlier run")
    server = Server(
        json_response({"items": [1], "next_cursor": "c"}),
        json_response({"items": [2], "next_cursor": None}),
    )

    server.run("--out", str(file), "keys", "list", "--all")

    pages = [json.loads(line) for line in file.read_text().splitlines()]
    assert [page["items"] for page in pages] == [[1], [2]]


def test_the_key_may_be_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("cpk_svc_of_a_file\n")
    server = Server(json_response({}))
    environment = {"CARET_CONSOLE_URL": "http://caret.test", "CARET_SERVICE_KEY_FILE": str(file)}

    server.run("usage", "get-report", environment=environment)

    assert server.requests[0].headers["Authorization"] == "Bearer cpk_svc_of_a_file"


def test_a_missing_key_file_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    environment = {"CARET_SERVICE_KEY_FILE": "/nonexistent/key"}

    assert run(["keys", "list"], environment) == EXIT_USAGE
    assert "/nonexistent/key" in capsys.readouterr().err


@pytest.mark.parametrize(
    "argv",
    [
        ("keys", "list", "--limit", "many"),
        ("keys", "create", "--kind", "gold"),
        ("keys", "create", "--limits", "{"),
        ("keys", "create", "--is-test", "perhaps"),
        ("nothing",),
        (),
    ],
)
def test_invalid_arguments_are_rejected_before_sending(argv: tuple[str, ...]) -> None:
    server = Server()

    with pytest.raises(SystemExit) as exit_:
        server.run(*argv)

    assert (exit_.value.code, server.requests) == (EXIT_USAGE, [])


@pytest.mark.parametrize(
    ("command", "description"),
    [
        ("", "keys create, list, revoke"),
        ("keys", "create Make a key. list List keys. revoke"),
        ("keys create", "--name TEXT What it is for, 100% free."),
    ],
)
def test_help_describes_the_commands(
    command: str, description: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        Server().run(*command.split(), "--help")

    assert description in " ".join(capsys.readouterr().out.split())  # on one line


@pytest.mark.parametrize("document", [{}, {"paths": []}, {"paths": {"/": {"get": {}}}}])
def test_an_unsupported_openapi_document_is_rejected(document: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedApiDocument):
        read_operations(document)


def test_a_server_that_returns_a_web_page_is_not_a_console(
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = httpx.MockTransport(lambda _request: httpx.Response(200, html="<html></html>"))

    assert run(("keys", "list"), {}, transport=page) == EXIT_USAGE
    assert capsys.readouterr().err == "caret: The server is not a Caret console.\n"


def test_types_are_resolved_through_references() -> None:
    create = next(
        operation for operation in read_operations(DOCUMENT) if operation.command == "create"
    )

    types = {field.name: field.value_type for field in create.fields}
    assert types["kind"] is ParameterType.TEXT
    assert types["scopes"] is ParameterType.LIST


def test_an_error_has_its_status_and_code() -> None:
    problem = httpx.Response(409, json={"code": "conflict", "detail": "Too late."})
    transport = httpx.MockTransport(Server(problem))
    client = ApiClient("http://caret.test", key=None, transport=transport)

    with pytest.raises(ApiError, match="Too late") as exc_info:
        client.request(ApiRequest("PUT", "/api/v1/policy", body={}))

    assert (exc_info.value.status, exc_info.value.code) == (409, "conflict")


def test_an_unreachable_server_is_reported() -> None:
    transport = httpx.MockTransport(Server(*[httpx.ConnectError("no")] * http_client.MAX_TRIES))
    client = ApiClient("http://caret.test", key=None, sleep=lambda _: None, transport=transport)

    with pytest.raises(ServerUnreachable):
        client.request(ApiRequest("GET", "/api/v1/report"))


def render(response: Any) -> str:
    output = io.StringIO()
    print_response(Console(width=100, file=output), response)
    return output.getvalue()


def test_rows_are_shown_as_a_table_and_the_rest_as_fields() -> None:
    text = render({"keys": [{"name": "CI", "last_used_at": None}], "total": 1, "is_last": True})

    assert "keys: 1" in text
    assert "last used at" in text
    assert "CI" in text
    assert "total" in text
    assert "yes" in text


def test_control_characters_are_escaped() -> None:
    text = render({"keys": [{"name": "a\x1b[2Jb", "also": {"c\x1b": ["[bold]d"]}}]})

    assert "\x1b" not in text
    assert r"a\x1b[2Jb" in text
    assert "[bold]d" in text


def test_the_default_url_is_the_console_that_make_up_starts() -> None:
    assert cli.DEFAULT_URL == "http://127.0.0.1:8400"
