import pytest
from lsprotocol import types

from caret_ls.gateway_connection import Address
from caret_ls.server import CaretServer, make_server


def announced_capabilities(server: CaretServer) -> types.ServerCapabilities:
    params = types.InitializeParams(capabilities=types.ClientCapabilities())
    steps = server.protocol.lsp_initialize(params)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: types.InitializeResult = end.value
            return result.capabilities


def test_inline_completion_is_announced() -> None:
    assert announced_capabilities(make_server()).inline_completion_provider is not None


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
