"""The language server: LSP on standard input and output, for one session.

It implements `textDocument/inlineCompletion`, and for editors without it `textDocument/completion`.
It also implements these messages, which LSP does not have. The modules `assistant_features` and
`edit_features` implement further messages of this kind.

    $/caret/status               to the editor: {"status": "ready", "gatewayUrl": ...}. The status
                                 is a `status_board.ServerStatus`. If it is "signed_out", "reason"
                                 is a `SignedOutReason`. "keyFile" is the path of a file with an API
                                 key. The server ignores this file, because other users of the
                                 computer have permissions for it
    $/caret/suggestionGrown      to the editor: {"uri": ...}, only if its experimental capabilities
                                 have "caretGrowingSuggestions": true. The suggestion has more text:
                                 the editor requests it again at the cursor
    $/caret/suggestionDisplayed  from the editor: {"uri": ...} when the suggestion is on the screen;
                                 optional, for a more exact display latency
    $/caret/suggestionDismissed  from the editor: {"uri": ...} when the user hides the suggestion
    $/caret/selectionChanged     from the editor: {"uri": ..., "hasSelection": true} if text is
                                 selected, false if it no longer is
    $/caret/signIn               from the editor: {"key": "cpk_..."}, the API key in its secret
                                 storage. {"key": null} removes this key. A key from elsewhere, such
                                 as a file, may then apply
    $/caret/signedIn             to the editor: {"key": "cpk_..."} for its secret storage, only if
                                 its experimental capabilities have "caretSecretStorage": true.
                                 Otherwise the server stores the key
    $/caret/explainNoSuggestion  request. Response: {"reason": "in_comment"}; the reason is null if
                                 something was suggested
    $/caret/findDefinitions      to the editor: {"token", "uri", "positions": [position]}, only if
                                 its experimental capabilities have "caretDefinitions": true. The
                                 editor asks its other language servers where the symbols at these
                                 positions are defined
    $/caret/definitionsFound     from the editor: {"token", "locations": [{"uri", "line"} or null]},
                                 one for each position; lines count from 0. This is no response,
                                 because some editors can answer a request only at once
    caret.suggestionAccepted     command of each suggestion; the editor runs it when the user
                                 accepts the suggestion
    caret.pause, caret.resume    commands: stop and continue automatic suggestions
    caret.startSignIn            command: opens the console, where the user confirms a code. The
                                 server then gets an API key. The code is shown in a message. If the
                                 experimental capabilities have "caretProgressNotices": true, it is
                                 the title of a cancellable work-done progress, which ends with the
                                 sign-in
"""

import asyncio
import logging
import os
from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import Any, Final

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, lsp_method

from caret_ls import VERSION
from caret_ls.api_key import ask_keyring, find_key, find_key_file_open_to_others
from caret_ls.assistant_features import add_assistant_features
from caret_ls.clock import SystemLoopClock
from caret_ls.completion_list import TRIGGER_CHARACTERS, needs_list, to_completion_list
from caret_ls.completion_provider import InlineRequest
from caret_ls.definitions.definition_lookup import DefinitionQuestion, Location
from caret_ls.edit_features import add_edit_features
from caret_ls.editor_sign_in import EditorSignIn
from caret_ls.gateway_connection import Address
from caret_ls.lsp_conversions import (
    SUGGESTION_ACCEPTED,
    to_inline_request,
    to_lsp_item,
    to_position,
    to_text_change,
)
from caret_ls.session import Session
from caret_ls.settings import Settings, config_folder, has_capability, read_settings
from caret_ls.status_board import ServerStatus, SignedOutReason

STATUS: Final = "$/caret/status"
SELECTION_CHANGED: Final = "$/caret/selectionChanged"
SUGGESTION_GROWN: Final = "$/caret/suggestionGrown"
SUGGESTION_DISPLAYED: Final = "$/caret/suggestionDisplayed"
SUGGESTION_DISMISSED: Final = "$/caret/suggestionDismissed"
SIGN_IN: Final = "$/caret/signIn"
FIND_DEFINITIONS: Final = "$/caret/findDefinitions"
DEFINITIONS_FOUND: Final = "$/caret/definitionsFound"
EXPLAIN_NO_SUGGESTION: Final = "$/caret/explainNoSuggestion"
PAUSE: Final = "caret.pause"
RESUME: Final = "caret.resume"
START_SIGN_IN: Final = "caret.startSignIn"
# Experimental capabilities.
_GROWING: Final = "caretGrowingSuggestions"
_DEFINITIONS: Final = "caretDefinitions"
_SECTION: Final = "caret"  # of the editor's settings
_MAX_WORD_CHARS: Final = 200  # of the word before the cursor
_log = logging.getLogger(__name__)


class CaretProtocol(LanguageServerProtocol):
    """pygls' protocol without pygls' own copies of open files, and with positions in UTF-16.

    Each editor supports UTF-16.
    """

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(
        self, params: types.InitializeParams
    ) -> Generator[Any, Any, types.InitializeResult]:
        # Without the editor's list of encodings, pygls uses UTF-16.
        if params.capabilities.general is not None:
            params.capabilities.general.position_encodings = None
        # pygls announces to the editor that each registered feature is supported.
        if not needs_list(params):
            del self.fm.features[types.TEXT_DOCUMENT_COMPLETION]
        return (yield from super().lsp_initialize(params))

    # pygls calls what these generators yield: a function, its arguments and keyword arguments.

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(
        self, params: types.DidOpenTextDocumentParams
    ) -> Generator[Any, Any, None]:
        yield self.fm.features[types.TEXT_DOCUMENT_DID_OPEN], (params,), None

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(
        self, params: types.DidChangeTextDocumentParams
    ) -> Generator[Any, Any, None]:
        yield self.fm.features[types.TEXT_DOCUMENT_DID_CHANGE], (params,), None

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(
        self, params: types.DidCloseTextDocumentParams
    ) -> Generator[Any, Any, None]:
        yield self.fm.features[types.TEXT_DOCUMENT_DID_CLOSE], (params,), None


class CaretServer(LanguageServer):
    """The server. It logs its own errors, and does not show them to the user."""

    def __init__(self) -> None:
        super().__init__("caret-ls", VERSION, protocol_cls=CaretProtocol, max_workers=2)
        self._session: Session | None = None
        self._running: asyncio.Task[None] | None = None  # the session; kept from garbage collection
        self._editor = ""  # the editor's name and version
        self._editor_settings: object = None  # the last settings from the editor
        self._editor_key: str | None = None  # the API key from the editor, or from a sign-in
        # A key file that is ignored because others have permissions for it. None: there is no such
        # file, or there is another API key.
        self._key_file_open_to_others: Path | None = None
        self._editor_sign_in = EditorSignIn(self, self.sign_in)

    @property
    def session(self) -> Session:
        """The session of the editor.

        Raises RuntimeError before `initialize`, which is the first request of every editor.
        """
        if self._session is None:
            raise RuntimeError("not initialized")
        return self._session

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log the error's type only: its text may contain code."""
        _log.error("server.failed kind=%s source=%s", type(error).__name__, source.__name__)

    def initialize(self, params: types.InitializeParams) -> None:
        """Create the session for an editor. It does not run yet."""
        info = params.client_info
        # One line, because it is a header. Emacs' version has a line break.
        self._editor = " ".join(f"{info.name} {info.version or ''}".split()) if info else ""
        self._editor_settings = params.initialization_options
        if isinstance(self._editor_settings, dict):
            self._editor_key = self._editor_settings.get("api_key")
        self._session = Session(
            Settings(), SystemLoopClock(), self._send_status, send_grown=self._send_grown
        )
        experimental = params.capabilities.experimental
        self._session.completions.can_grow = has_capability(experimental, _GROWING)
        if has_capability(experimental, _DEFINITIONS):
            self._session.definitions.send_question = self._send_question
        self._editor_sign_in.initialize(experimental)

    async def run(self) -> None:
        """Start the session. It runs until this process ends."""
        await self.set_up()  # first, because each status contains the gateway's URL
        self._running = asyncio.create_task(self.session.run())
        self._running.add_done_callback(_log_failure)

    async def set_up(self, *, editor_settings: object = None) -> None:
        """Read all settings again; `editor_settings` are new ones from the editor."""
        if editor_settings is not None:
            self._editor_settings = editor_settings
        folder = config_folder()
        settings, problems = read_settings(
            os.environ, folder / "config.toml", self._editor_settings
        )
        for name in problems:
            _log.warning("settings.invalid name=%s", name)
        address = await self._find_address(settings, folder)
        self._key_file_open_to_others = (
            find_key_file_open_to_others(os.environ, folder) if address is None else None
        )
        reason = (
            SignedOutReason.NO_KEY
            if self._key_file_open_to_others is None
            else SignedOutReason.KEY_FILE_NOT_PRIVATE
        )
        self.session.set_up(settings, address, no_key_reason=reason)

    async def sign_in(self, key: str | None) -> None:
        """Use an API key from the editor; None: use a key from elsewhere, if there is one."""
        self._editor_key = key
        await self.set_up()

    def start_sign_in(self) -> None:
        """Start a sign-in by the device flow. A sign-in in progress is cancelled."""
        task = self._editor_sign_in.start(self.session.settings, editor=self._editor)
        task.add_done_callback(_log_failure)

    def pause(self, *, is_paused: bool) -> None:
        self.session.board.set(is_paused=is_paused)

    async def _find_address(self, settings: Settings, folder: Path) -> Address | None:
        """Return the address with the API key; None if there is no key.

        The key is looked up in a thread, because a keyring may ask the user to unlock it.
        """
        url = settings.gateway_url
        find = partial(find_key, os.environ, folder, gateway_url=url, ask_keyring=ask_keyring)
        key = self._editor_key or await asyncio.to_thread(find)
        return None if key is None else Address(url, key, self._editor)

    def _send_status(self, status: ServerStatus) -> None:
        params: dict[str, str] = {"status": status.value}
        params["gatewayUrl"] = self.session.settings.gateway_url
        if status is ServerStatus.SIGNED_OUT and self.session.board.signed_out_reason is not None:
            params["reason"] = self.session.board.signed_out_reason.value
        if self._key_file_open_to_others is not None:
            params["keyFile"] = str(self._key_file_open_to_others)
        self.protocol.notify(STATUS, params)

    def _send_grown(self, uri: str) -> None:
        self.protocol.notify(SUGGESTION_GROWN, {"uri": uri})

    def _send_question(self, question: DefinitionQuestion) -> None:
        positions = [types.Position(at.line, at.units) for at in question.positions]
        params = {"token": question.token, "uri": question.uri, "positions": positions}
        self.protocol.notify(FIND_DEFINITIONS, params)


def make_server() -> CaretServer:
    server = CaretServer()
    _add_lifecycle(server)
    _add_files(server)
    _add_completions(server)
    _add_commands(server)
    add_assistant_features(server, lambda: server.session)
    add_edit_features(server, lambda: server.session)
    _add_definitions(server)
    return server


def _add_lifecycle(server: CaretServer) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        server.initialize(params)

    @server.feature(types.INITIALIZED)
    async def initialized(_params: types.InitializedParams) -> None:
        await server.run()

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def configured(params: types.DidChangeConfigurationParams) -> None:
        # Some editors send {"caret": our settings}, others send only our settings.
        settings = params.settings
        await server.set_up(
            editor_settings=settings.get(_SECTION, settings) if isinstance(settings, dict) else None
        )

    @server.feature(SIGN_IN)
    async def sign_in(params: Any) -> None:
        await server.sign_in(params.key)


def _add_files(server: CaretServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        file = params.text_document
        server.session.open(file.uri, file.language_id, file.text, version=file.version)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        changes = [to_text_change(change) for change in params.content_changes]
        file = params.text_document
        server.session.change(file.uri, changes, version=file.version)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        server.session.close(params.text_document.uri)

    @server.feature(SELECTION_CHANGED)
    def selected(params: Any) -> None:
        server.session.select(params.uri, has_selection=params.hasSelection)


def _add_completions(server: CaretServer) -> None:
    # Without options, pygls would not announce the capability.
    @server.feature(types.TEXT_DOCUMENT_INLINE_COMPLETION, types.InlineCompletionOptions())
    async def complete(params: types.InlineCompletionParams) -> types.InlineCompletionList:
        uri, request = params.text_document.uri, to_inline_request(params)
        server.session.look_up_definitions(uri, request.position)
        offer = await server.session.completions.provide(uri, request)
        if offer is None:
            return types.InlineCompletionList([])
        others = await server.session.alternatives.get_or_request(
            uri, offer, is_invoked=request.is_invoked
        )
        return types.InlineCompletionList([to_lsp_item(item) for item in (offer, *others)])

    @server.feature(SUGGESTION_DISPLAYED)
    def displayed(params: Any) -> None:
        server.session.on_displayed(params.uri)

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(TRIGGER_CHARACTERS))
    async def list_completions(params: types.CompletionParams) -> types.CompletionList:
        uri, position = params.text_document.uri, to_position(params.position)
        offer = await server.session.completions.provide(uri, InlineRequest(position))
        file = server.session.files.get(uri)
        if offer is None or file is None:
            return types.CompletionList(is_incomplete=True, items=[])
        text_before = file.buffer.text_before(position, max_chars=_MAX_WORD_CHARS)
        return to_completion_list(to_lsp_item(offer), text_before)

    @server.feature(SUGGESTION_DISMISSED)
    def dismissed(params: Any) -> None:
        server.session.dismiss(params.uri)

    @server.feature(EXPLAIN_NO_SUGGESTION)
    def explain_no_suggestion(_params: Any) -> dict[str, str | None]:
        return {"reason": server.session.completions.last_reason}


def _add_definitions(server: CaretServer) -> None:
    @server.feature(DEFINITIONS_FOUND)
    async def definitions_found(params: Any) -> None:
        locations = [
            None if item is None else Location(str(item.uri), int(item.line))
            for item in params.locations
        ]
        await server.session.definitions.on_answer(int(params.token), locations)


def _add_commands(server: CaretServer) -> None:
    @server.command(SUGGESTION_ACCEPTED)
    def accepted(id: str) -> None:
        server.session.accept(id)

    @server.command(PAUSE)
    def pause() -> None:
        server.pause(is_paused=True)

    @server.command(RESUME)
    def resume() -> None:
        server.pause(is_paused=False)

    @server.command(START_SIGN_IN)
    async def start_sign_in() -> None:
        server.start_sign_in()


def _log_failure(task: asyncio.Task[None]) -> None:
    """Log an unexpected error of the session or of a sign-in."""
    if not task.cancelled() and task.exception() is not None:
        _log.error("task.failed kind=%s", type(task.exception()).__name__)
