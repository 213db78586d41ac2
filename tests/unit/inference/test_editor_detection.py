"""Detection of the editor from the headers and the query of a request."""

import pytest

from inference.consumers.base import EDITORS, Headers, detect_editor
from tests.fakes.gateway import FakeGateway
from tests.fakes.http_gateway import send_request


@pytest.mark.parametrize(
    ("header", "editor"),
    [
        ("Visual Studio Code (desktop)/1.99 caret/0.1", "vscode"),
        ("tabby-agent/1.8.0 (node 20) VSCode/1.95", "vscode"),
        ("code-server/1.139.1 caret-ls/0.1.0", "vscode"),
        ("Cursor/0.42 vscode", "cursor"),
        ("Neovim/0.10", "neovim"),
        ("VIM - Vi IMproved 9.1", "vim"),
        ("IntelliJ IDEA/2025.1", "jetbrains"),
        ("Zed/0.190", "zed"),
        ("code-server/4.104 caret/0.1", "vscode"),
        ("Code - OSS/1.99", "vscode"),
        ("Android Studio/2025.1", "jetbrains"),
        ("Qt Creator 17", "qt_creator"),
        ("Visual Studio/17.9", "visual_studio"),
        ("axios/1.7", ""),
        ("", ""),
        (None, ""),
        ("x" * 10_000 + "vscode", ""),  # only the beginning of a long text is read
    ],
)
def test_an_editor_is_detected_by_its_header(header: str | None, editor: str) -> None:
    assert detect_editor(header) == editor


def test_the_first_header_that_names_an_editor_decides() -> None:
    assert detect_editor("unheard of", "neovim") == "neovim"
    assert detect_editor("zed", "neovim") == "zed"


@pytest.mark.parametrize("header", ["def secret(): pass", "vscode" * 90, "\0zed"])
def test_the_text_of_the_header_is_not_kept(header: str) -> None:
    assert detect_editor(header) in EDITORS | {""}


@pytest.mark.parametrize(
    ("query", "headers", "editor"),
    [
        ("?editor=vim", [(b"user-agent", b"curl/8")], "vim"),
        ("?editor=vim", [(b"x-caret-editor", b"zed")], "zed"),
        ("?editor=x", [(b"user-agent", b"curl/8")], "curl"),
        ("?vim", [(b"user-agent", b"OpenAI/Python 3.52")], "openai"),
    ],
)
async def test_the_query_precedes_the_user_agent_and_follows_the_editor_header(
    query: str, headers: Headers, editor: str
) -> None:
    gateway = FakeGateway()

    await send_request(gateway, f"/infill{query}", {"input_prefix": "a"}, headers=headers)

    (completion,) = gateway.journal.completions
    assert completion.editor == editor


async def test_the_usage_record_names_the_editor() -> None:
    gateway = FakeGateway()
    headers = [(b"user-agent", b"curl/8"), (b"x-caret-editor", b"nvim secret words")]

    await send_request(
        gateway, "/v1/completions", {"segments": {"prefix": "a = "}}, headers=headers
    )

    (completion,) = gateway.journal.completions
    assert completion.editor == "neovim"
