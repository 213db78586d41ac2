import pytest
from lsprotocol import types

from caret_ls.gateway_connection import Address
from caret_ls.server import CaretServer, make_server


def announced(server: CaretServer) -> types.ServerCapabilities:
    params = types.InitializeParams(capabilities=types.ClientCapabilities())
    steps = server.protocol.lsp_initialize(params)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: types.InitializeResult = end.value
            return result.capabilities


def test_editors_that_ask_only_for_what_is_announced_ask_for_suggestions() -> None:
    assert announced(make_server()).inline_completion_provider is not None


async def test_it_goes_with_the_key_that_was_told_last(monkeypatch: pytest.MonkeyPatch) -> None:
    server, gone_with = make_server(), list[Address | None]()
    params = types.InitializeParams(
        capabilities=types.ClientCapabilities(), initialization_options={"api_key": "first"}
    )
    server.initialize(params)
    monkeypatch.setattr(server.session.link, "set_address", gone_with.append)
    await server.set_up()
    for key in ("second", "third"):
        await server.sign_in(key)

    assert [address and address.key for address in gone_with] == ["first", "second", "third"]
