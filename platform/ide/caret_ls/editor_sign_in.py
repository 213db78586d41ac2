"""A sign-in from the editor: shows the code and the result to the user, and stores the API key.

`device_sign_in` implements the protocol.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final
from uuid import uuid4

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from caret_ls.api_key import store_key
from caret_ls.device_sign_in import (
    DeviceCodes,
    SignInFailed,
    SignInProblem,
    make_post,
    request_codes,
    wait_for_key,
)
from caret_ls.settings import Settings, config_folder, has_capability

SIGNED_IN: Final = "$/caret/signedIn"
# Experimental capabilities of editors (see `server`).
_PROGRESS_NOTICES: Final = "caretProgressNotices"
_SECRET_STORAGE: Final = "caretSecretStorage"  # noqa: S105  # a capability, not a secret
_PROBLEMS: Final = {
    SignInProblem.DENIED: "Caret: the sign-in was denied, or your policy does not allow it.",
    SignInProblem.EXPIRED: "Caret: the code has expired. Start the sign-in again.",
    SignInProblem.UNREACHABLE: "Caret: no console answers at {console}.",
}
_log = logging.getLogger(__name__)


class EditorSignIn:
    def __init__(self, server: LanguageServer, use_key: Callable[[str], Awaitable[None]]) -> None:
        """`use_key` connects to the gateway with the new API key."""
        self._server = server
        self._use_key = use_key
        self._task: asyncio.Task[None] | None = None
        self._has_secret_storage = False
        self._has_progress_notices = False

    def initialize(self, experimental_capabilities: object) -> None:
        """Read the capabilities that the editor declares; they may be any JSON value."""
        self._has_secret_storage = has_capability(experimental_capabilities, _SECRET_STORAGE)
        self._has_progress_notices = has_capability(experimental_capabilities, _PROGRESS_NOTICES)

    def start(self, settings: Settings, *, editor: str) -> asyncio.Task[None]:
        """Start a sign-in and return its task. A sign-in in progress is cancelled."""
        self._cancel()
        self._task = asyncio.create_task(self._sign_in(settings, editor))
        return self._task

    def _cancel(self, _notice: object = None) -> None:
        """Cancel the sign-in in progress. `_notice` is the argument of a notice's callback."""
        if self._task is not None:
            self._task.cancel()

    async def _sign_in(self, settings: Settings, editor: str) -> None:
        post = make_post(settings.console_url)
        try:
            codes = await request_codes(post, editor=editor)
            async with self._show_codes(codes):
                key = await wait_for_key(post, codes)
            await self._use_and_store_key(settings, key)
        except SignInFailed as error:
            _log.info("sign_in.failed problem=%s", error.problem)
            self._show_message(
                _PROBLEMS[error.problem].format(console=settings.console_url), is_error=True
            )
        except OSError as error:
            _log.error("sign_in.not_stored error=%s", type(error).__name__)
            self._show_message("Caret is signed in, but could not store the key.", is_error=True)
        else:
            self._show_message("Caret is signed in.")

    @asynccontextmanager
    async def _show_codes(self, codes: DeviceCodes) -> AsyncIterator[None]:
        """Open the page where the user confirms the code, and show the code.

        With `caretProgressNotices`, the code is visible until the block ends. Otherwise it is in a
        message, which the user closes.
        """
        text = (
            f"Caret: confirm the code {codes.user_code} in your browser, "
            f"at {codes.verification_uri}"
        )
        if not self._has_progress_notices:
            self._show_message(text)
            self._open_page(codes.verification_uri_complete)
            yield
            return
        async with self._show_progress(text):
            self._open_page(codes.verification_uri_complete)
            yield

    @asynccontextmanager
    async def _show_progress(self, text: str) -> AsyncIterator[None]:
        """Show a notice until the block ends. If the user cancels it, cancel the sign-in."""
        progress, token = self._server.work_done_progress, str(uuid4())
        _ = await progress.create_async(token)  # returns None, although annotated as a future
        progress.tokens[token].add_done_callback(self._cancel)
        progress.begin(token, types.WorkDoneProgressBegin(text, cancellable=True))
        try:
            yield
        finally:
            del progress.tokens[token]
            progress.end(token, types.WorkDoneProgressEnd())

    def _open_page(self, url: str) -> None:
        window = self._server.client_capabilities.window
        if window and window.show_document and window.show_document.support:
            page = types.ShowDocumentParams(uri=url, external=True)
            self._server.window_show_document(page)

    async def _use_and_store_key(self, settings: Settings, key: str) -> None:
        """Use the API key, and store it: in the editor's secret storage, or else on this machine.

        Raises OSError.
        """
        await self._use_key(key)
        if self._has_secret_storage:
            self._server.protocol.notify(SIGNED_IN, {"key": key})
            return
        store = partial(store_key, config_folder(), gateway_url=settings.gateway_url, key=key)
        await asyncio.to_thread(store)

    def _show_message(self, text: str, *, is_error: bool = False) -> None:
        message_type = types.MessageType.Error if is_error else types.MessageType.Info
        self._server.window_show_message(types.ShowMessageParams(message_type, text))
