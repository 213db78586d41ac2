"""`caret GROUP COMMAND`, against a server that describes its operations."""

import io
import json
from collections.abc import Callable
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
from caret.client.api.output import show

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
Answer = Callable[[httpx.Request], httpx.Response]


class Server:
    """Returns the responses in turn, and records its requests except that for the description."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.asked: list[httpx.Request] = []
        self._answers = list(answers)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/api/v1/openapi.json":
            return httpx.Response(200, json=DOCUMENT)
        self.asked.append(request)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def run(self, *argv: str, environment: dict[str, str] | None = None) -> int:
        known = {"CARET_CONSOLE_URL": "http://caret.test", "CARET_SERVICE_KEY": "cpk_svc_x"}
        return run(argv, environment or known, transport=httpx.MockTransport(self))


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the pause between two attempts."""
    monkeypatch.setattr(http_client, "_FIRST_PAUSE_S", 0.0)


def ok(answer: Any, status: int = 200) -> httpx.Response:
    return httpx.Response(status, json=answer)


def test_a_command_asks_for_what_it_is_named_after(capsys: pytest.CaptureFixture[str]) -> None:
    server = Server(ok({"keys": [], "next_cursor": None}))

    assert server.run("keys", "list", "--limit", "5", "--only-idle", "yes") == 0

    (asked,) = server.asked
    assert str(asked.url) == "http://caret.test/api/v1/keys?limit=5&only_idle=true"
    assert asked.headers["Authorization"] == "Bearer cpk_svc_x"
    assert json.loads(capsys.readouterr().out) == {"keys": [], "next_cursor": None}


def test_a_body_is_made_of_what_was_given() -> None:
    server = Server(ok({}, 201))
    given = ("--name", "CI", "--kind", "svc", "--scopes", "a", "--scopes", "b", "--rate", "1.5")

    server.run("keys", "create", *given, "--limits", '{"x": 1}', "--is-test", "false")

    assert json.loads(server.asked[0].content) == {
        "name": "CI",
        "kind": "svc",
        "scopes": ["a", "b"],
        "rate": 1.5,
        "limits": {"x": 1},
        "is_test": False,
    }


def test_a_body_may_come_from_a_file_and_be_changed(tmp_path: Path) -> None:
    file = tmp_path / "key.json"
    file.write_text('{"name": "CI", "kind": "svc"}')
    server = Server(ok({}, 201))

    server.run("keys", "create", "--body", str(file), "--kind", "live")

    assert json.loads(server.asked[0].content) == {"name": "CI", "kind": "live"}


def test_a_path_is_filled_in_and_cannot_lead_elsewhere() -> None:
    server = Server(ok({}))

    server.run("keys", "revoke", "../policy")

    assert server.asked[0].url.raw_path == b"/api/v1/keys/..%2Fpolicy/revoke"


@pytest.mark.parametrize("month", ["9999-12", "2026-13", "October", "2026-10-01", ""])
def test_a_month_that_is_none_is_refused_in_a_sentence(
    month: str, capsys: pytest.CaptureFixture[str]
) -> None:
    server = Server()

    with pytest.raises(SystemExit) as ended:
        server.run("export", "usage", "--month", month)

    assert ended.value.code == EXIT_USAGE
    assert "argument --month: write a month such as 2026-10" in capsys.readouterr().err
    assert server.asked == []


def test_all_pages_are_asked_for_in_turn(capsys: pytest.CaptureFixture[str]) -> None:
    server = Server(ok({"keys": [], "next_cursor": "n"}), ok({"keys": [], "next_cursor": None}))

    server.run("keys", "list", "--all", "--limit", "1")

    assert [str(asked.url.query, "ascii") for asked in server.asked] == [
        "limit=1",
        "limit=1&cursor=n",
    ]
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_what_makes_something_is_sent_again_under_the_same_word() -> None:
    server = Server(httpx.ReadTimeout("lost"), ok({}, 201))

    assert server.run("keys", "create", "--name", "CI") == 0

    words = {asked.headers["Idempotency-Key"] for asked in server.asked}
    assert (len(server.asked), len(words)) == (2, 1)


def test_what_may_not_be_sent_twice_is_not() -> None:
    server = Server(httpx.ReadTimeout("lost"))

    assert server.run("keys", "revoke", "abc") == EXIT_UNANSWERED
    assert len(server.asked) == 1


def test_a_busy_server_is_asked_again_when_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    busy = httpx.Response(429, headers={"Retry-After": "7"}, json={"code": "x", "detail": "y"})
    server = Server(busy, ok({}))
    caller = ApiClient(
        "http://caret.test", None, sleep=pauses.append, transport=httpx.MockTransport(server)
    )

    caller.request(ApiRequest("GET", "/api/v1/report"))

    assert pauses == [7.0]


def test_after_some_tries_it_gives_up(capsys: pytest.CaptureFixture[str]) -> None:
    server = Server(*[httpx.ConnectError("refused")] * 9)

    assert server.run("usage", "get-report") == EXIT_UNANSWERED
    assert len(server.asked) == http_client.MAX_TRIES
    assert "http://caret.test" in capsys.readouterr().err


def test_a_problem_is_said_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    problem = {"code": "invalid", "detail": "Too long.", "field": "name"}
    server = Server(httpx.Response(422, json=problem))

    assert server.run("keys", "create", "--name", "x" * 999) == EXIT_REFUSED
    assert capsys.readouterr().err == "caret: name: Too long. (invalid)\n"


def test_an_answer_that_is_no_problem_is_told_by_its_status(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert Server(httpx.Response(418, text="teapot")).run("usage", "get-report") == EXIT_REFUSED
    assert "418" in capsys.readouterr().err


def test_a_redirect_is_not_followed_with_the_key() -> None:
    server = Server(httpx.Response(302, headers={"Location": "http://elsewhere.test/"}))

    assert server.run("usage", "get-report") == EXIT_REFUSED
    assert len(server.asked) == 1


def test_an_answer_goes_to_the_file_that_was_named(tmp_path: Path) -> None:
    file = tmp_path / "report.csv"
    server = Server(httpx.Response(200, text="day,requests\n"))

    server.run("--out", str(file), "usage", "get-report")

    assert file.read_text() == "day,requests\n"


def test_the_key_may_stand_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("cpk_svc_of_a_file\n")
    server = Server(ok({}))
    environment = {"CARET_CONSOLE_URL": "http://caret.test", "CARET_SERVICE_KEY_FILE": str(file)}

    server.run("usage", "get-report", environment=environment)

    assert server.asked[0].headers["Authorization"] == "Bearer cpk_svc_of_a_file"


def test_a_file_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
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
def test_what_is_typed_wrong_is_not_sent(argv: tuple[str, ...]) -> None:
    server = Server()

    with pytest.raises(SystemExit) as left:
        server.run(*argv)

    assert (left.value.code, server.asked) == (EXIT_USAGE, [])


@pytest.mark.parametrize("argv", [("--help",), ("keys", "--help"), ("keys", "create", "--help")])
def test_help_says_what_there_is(argv: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        Server().run(*argv)

    assert "key" in capsys.readouterr().out.lower()


@pytest.mark.parametrize("document", [{}, {"paths": []}, {"paths": {"/": {"get": {}}}}])
def test_what_is_no_description_of_ours_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedApiDocument):
        read_operations(document)


def test_shapes_are_read_through_references_and_null() -> None:
    create = next(each for each in read_operations(DOCUMENT) if each.command == "create")

    assert {each.name: each.kind for each in create.fields if each.name in ("kind", "scopes")} == {
        "kind": ParameterType.TEXT,
        "scopes": ParameterType.LIST,
    }


def test_a_refusal_has_its_code() -> None:
    problem = httpx.Response(409, json={"code": "conflict", "detail": "Too late."})
    caller = ApiClient("http://caret.test", None, transport=httpx.MockTransport(Server(problem)))

    with pytest.raises(ApiError, match="Too late") as refused:
        caller.request(ApiRequest("PUT", "/api/v1/policy", body={}))

    assert (refused.value.status, refused.value.code) == (409, "conflict")


def test_nobody_there_is_unanswered() -> None:
    transport = httpx.MockTransport(Server(*[httpx.ConnectError("no")] * 9))
    caller = ApiClient("http://caret.test", None, sleep=lambda _: None, transport=transport)

    with pytest.raises(ServerUnreachable):
        caller.request(ApiRequest("GET", "/api/v1/report"))


def shown(answer: Any) -> str:
    console = Console(width=100, file=io.StringIO())
    show(console, answer)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_rows_are_a_table_and_the_rest_fields() -> None:
    text = shown({"keys": [{"name": "CI", "last_used_at": None}], "total": 1, "is_last": True})

    assert "keys: 1" in text
    assert "last used at" in text
    assert "CI" in text
    assert "total" in text
    assert "yes" in text


def test_a_name_cannot_command_the_terminal() -> None:
    text = shown({"keys": [{"name": "a\x1b[2Jb", "also": {"c\x1b": ["[bold]d"]}}]})

    assert "\x1b" not in text
    assert r"a\x1b[2Jb" in text
    assert "[bold]d" in text


def test_the_default_server_is_the_one_that_make_up_starts() -> None:
    assert cli.DEFAULT_URL == "http://127.0.0.1:8400"
