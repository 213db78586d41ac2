from lsprotocol import types

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
