"""`manage.py complete`: its arguments and its error messages."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.server import ServerConnection, serve

from caret.client.complete_cli import _LANGUAGES, EXIT_REFUSED, EXIT_USAGE, main
from caret.contracts.language_ids import LANGUAGES

META = {
    "first_token_ms": 12.5,
    "total_ms": 20.0,
    "prompt_tokens": 30,
    "cached_tokens": 16,
    "generated_tokens": 2,
    "pool": "demo-fast",
}
DONE = {"type": "done", "id": "1", "finish_reason": "stop", "meta": META}
DELTA = {"type": "delta", "id": "1", "text": "b + c"}


class Gateway:
    """Sends the same frames in response to each request, and records requests and API keys."""

    def __init__(self, *frames: dict[str, Any]) -> None:
        self.frames = frames
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []

    def handle(self, connection: ServerConnection) -> None:
        assert connection.request is not None
        self.keys.append(connection.request.headers["Authorization"])
        self.requests.append(json.loads(connection.recv()))
        for frame in self.frames:
            connection.send(json.dumps(frame))


@contextmanager
def _running(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Serve the gateway, and set its URL and an API key in the environment."""
    server = serve(gateway.handle, "127.0.0.1", 0, subprotocols=["caret.v1"])  # type: ignore[list-item]  # its Subprotocol is a NewType
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    port = server.socket.getsockname()[1]
    monkeypatch.setenv("CARET_GATEWAY_URL", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("CARET_API_KEY", "the-key")
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "a.py"
    path.write_text("a = \nd = 2\n")
    return path


def _arguments(source: Path, *extra_arguments: str) -> list[str]:
    """Return arguments with the cursor at the end of the first line, `a = `."""
    return [str(source), "--line", "1", "--column", "5", *extra_arguments]


def test_a_completion_is_printed_with_its_figures(
    source: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with _running(Gateway(DELTA, DONE), monkeypatch):
        code = main(_arguments(source))

    output = capsys.readouterr().out
    assert code == 0
    assert "a = b + c" in output
    assert "first token 12.5 ms" in output
    assert "16 of them cached" in output
    assert max(map(len, output.splitlines())) <= 80


def test_a_completion_may_be_printed_as_one_json_line(
    source: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with _running(Gateway(DELTA, DONE), monkeypatch):
        main(_arguments(source, "--json"))

    assert json.loads(capsys.readouterr().out) == {"text": "b + c", **DONE}


def test_the_request_contains_the_text_around_the_cursor(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = Gateway(DONE)
    with _running(gateway, monkeypatch):
        main(_arguments(source, "--mode", "block", "--max-tokens", "9"))

    assert gateway.keys == ["Bearer the-key"]
    assert gateway.requests == [
        {
            "type": "complete",
            "id": "1",
            "mode": "block",
            "path": "a.py",
            "language": "python",
            "prefix": "a = ",
            "suffix": "\nd = 2\n",
            "max_tokens": 9,
        }
    ]


def test_the_request_contains_the_path_in_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    (tmp_path / "shop" / "legal").mkdir()
    source = tmp_path / "shop" / "legal" / "a.py"
    source.write_text("a = \n")
    gateway = Gateway(DONE)
    with _running(gateway, monkeypatch):
        main(_arguments(source, "--repository", "acme/shop"))

    assert gateway.requests[0]["path"] == "legal/a.py"
    assert gateway.requests[0]["repository"] == {"name": "acme/shop"}


def test_unknown_figures_are_left_out(
    source: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    meta = {**META, "first_token_ms": None, "cached_tokens": None}
    with _running(Gateway({**DONE, "meta": meta}), monkeypatch):
        main(_arguments(source))

    output = capsys.readouterr().out
    assert "no text" in output
    assert "cached" not in output


def test_an_error_is_printed_with_its_code(
    source: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = {"type": "error", "id": "1", "code": "gateway_at_capacity", "message": "It is full."}
    with _running(Gateway(error), monkeypatch):
        code = main(_arguments(source))

    assert code == EXIT_REFUSED
    assert capsys.readouterr().err == "caret: It is full. (gateway_at_capacity)\n"


def test_a_connection_that_ends_early_is_reported(
    source: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with _running(Gateway(DELTA), monkeypatch):
        code = main(_arguments(source))

    assert code == EXIT_REFUSED
    assert "(connection_closed)" in capsys.readouterr().err


@pytest.mark.parametrize("url", ["http://127.0.0.1:{port}", "127.0.0.1", "ftp://somewhere"])
def test_an_unreachable_gateway_is_reported(
    source: Path, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as closed_socket:  # afterwards, nothing listens on its port
        closed_socket.bind(("127.0.0.1", 0))
        port = closed_socket.getsockname()[1]
    monkeypatch.setenv("CARET_GATEWAY_URL", url.format(port=port))
    monkeypatch.setenv("CARET_API_KEY", "the-key")

    code = main(_arguments(source))

    assert code == EXIT_REFUSED
    assert capsys.readouterr().err.startswith("caret: ")


def test_a_server_that_is_no_gateway_is_reported(
    source: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    # Accepts one connection, and closes it without a response.
    thread = threading.Thread(target=lambda: listener.accept()[0].close())
    thread.start()
    monkeypatch.setenv("CARET_GATEWAY_URL", f"http://127.0.0.1:{listener.getsockname()[1]}")
    monkeypatch.setenv("CARET_API_KEY", "the-key")

    code = main(_arguments(source))

    thread.join()
    listener.close()
    assert code == EXIT_REFUSED
    assert capsys.readouterr().err.startswith("caret: ")


@pytest.mark.parametrize("line", ["0", "99"])
def test_a_cursor_outside_the_file_is_rejected(
    source: Path, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([str(source), "--line", line, "--column", "1"])

    assert code == EXIT_USAGE
    assert f"There is no line {line}" in capsys.readouterr().err


def test_a_missing_file_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(_arguments(tmp_path / "b.py"))

    assert code == EXIT_USAGE
    assert "b.py cannot be read" in capsys.readouterr().err


def test_a_binary_file_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "b.py").write_bytes(b"\xff\xfe")

    code = main(_arguments(tmp_path / "b.py"))

    assert code == EXIT_USAGE
    assert "is not UTF-8 text" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [[], ["a.py"], ["a.py", "--line", "x", "--column", "1"], ["a.py", "--mode", "x"]]
)
def test_invalid_arguments_are_rejected(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)

    assert exit_.value.code == EXIT_USAGE
    assert "usage: manage.py complete" in capsys.readouterr().err


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the empty folder of a local installation, which no other setting overrides."""
    monkeypatch.delenv("CARET_GATEWAY_URL", raising=False)
    monkeypatch.delenv("CARET_API_KEY", raising=False)
    monkeypatch.setenv("CARET_HOME", str(tmp_path))
    return tmp_path


def test_without_an_installation_the_error_names_make_up(
    source: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(_arguments(source))

    assert code == EXIT_USAGE
    assert "make up" in capsys.readouterr().err


def test_with_a_half_written_installation_file_the_error_names_make_up(
    source: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "up.json").write_text('{"gateway_url":')

    code = main(_arguments(source))

    assert code == EXIT_USAGE
    assert "make up" in capsys.readouterr().err


def test_an_unknown_tenant_is_rejected_by_name(
    source: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tenants = [{"slug": "acme", "api_key": "k"}]
    (home / "up.json").write_text(json.dumps({"gateway_url": "http://x", "tenants": tenants}))

    code = main(_arguments(source, "--tenant", "initech"))

    assert code == EXIT_USAGE
    assert "There is no tenant initech here; there are acme" in capsys.readouterr().err


def test_the_key_of_the_named_tenant_is_used(
    source: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = Gateway(DONE)
    with _running(gateway, monkeypatch):
        monkeypatch.delenv("CARET_API_KEY")  # so that the key is read from `up.json`
        tenants = [{"slug": "acme", "api_key": "k-acme"}, {"slug": "globex", "api_key": "k-globex"}]
        (home / "up.json").write_text(json.dumps({"gateway_url": "http://x", "tenants": tenants}))

        main(_arguments(source, "--tenant", "globex"))

    assert gateway.keys == ["Bearer k-globex"]


def test_the_gateway_knows_every_detected_language() -> None:
    assert set(_LANGUAGES.values()) <= LANGUAGES
