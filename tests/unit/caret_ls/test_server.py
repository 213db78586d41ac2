"""The language server: its announced capabilities, and the editor's name and key that it sends."""

import pytest
from lsprotocol import types

from caret_ls.gateway_connection import Address
from caret_ls.server import CaretServer, make_server


def announced_capabilities(
    server: CaretServer, text_document: types.TextDocumentClientCapabilities | None = None
) -> types.ServerCapabilities:
    """Return the capabilities that the server announces to an editor with these capabilities."""
    capabilities = types.ClientCapabilities(text_document=text_document)
    params = types.InitializeParams(capabilities=capabilities)
    # pygls initializes in steps. The return value of the generator is the response.
    steps = server.protocol.lsp_initialize(params)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: types.InitializeResult = end.value
            return result.capabilities


def test_inline_completion_is_announced() -> None:
    assert announced_capabilities(make_server()).inline_completion_provider is not None


def test_a_completion_list_is_announced_only_to_editors_without_inline_completion() -> None:
    inline = types.TextDocumentClientCapabilities(
        inline_completion=types.InlineCompletionClientCapabilities()
    )

    assert announced_capabilities(make_server()).completion_provider is not None
    assert announced_capabilities(make_server(), inline).completion_provider is None


async def test_the_editors_name_becomes_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    server, addresses = make_server(), list[Address | None]()
    emacs = types.ClientInfo("emacs", "GNU Emacs 28.2 (build 2)\n of 2023-05-13")
    params = types.InitializeParams(
        capabilities=types.ClientCapabilities(),
        client_info=emacs,
        initialization_options={"api_key": "key"},
    )
    server.initialize(params)
    monkeypatch.setattr(server.session.link, "set_address", addresses.append)

    await server.set_up()

    assert [address and address.editor for address in addresses] == [
        "emacs GNU Emacs 28.2 (build 2) of 2023-05-13"
    ]


async def test_the_connection_uses_the_newest_key(monkeypatch: pytest.MonkeyPatch) -> None:
    server, addresses = make_server(), list[Address | None]()
    params = types.InitializeParams(
        capabilities=types.ClientCapabilities(), initialization_options={"api_key": "first"}
    )
    server.initialize(params)
    monkeypatch.setattr(server.session.link, "set_address", addresses.append)

    await server.set_up()
    for key in ("second", "third"):
        await server.sign_in(key)

    assert [address and address.key for address in addresses] == ["first", "second", "third"]
