"""One editor's session. It handles files, frames of the gateway and periodic work.

It also creates the objects that live as long as the session.
"""

import asyncio
import logging
import random
import secrets
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Final

from caret_ls import frames
from caret_ls.alternatives import Alternatives
from caret_ls.backoff import Backoff
from caret_ls.chat import Chat, ChatState
from caret_ls.chat_stream import stream_chat
from caret_ls.clock import LoopClock
from caret_ls.completion_client import CompletionClient, ResponseHandlers
from caret_ls.completion_provider import CompletionProvider, ProviderState
from caret_ls.content_exclusion import is_excluded
from caret_ls.debounce import Debouncer
from caret_ls.definitions.definition_lookup import DefinitionLookup
from caret_ls.docstring_writer import DocstringWriter, WriterState
from caret_ls.file_kind import FileKind
from caret_ls.frames import Frame, RequestContext
from caret_ls.gateway_connection import Address, ConnectionState, GatewayConnection
from caret_ls.git_repository import GitHead, Repository, read_head
from caret_ls.next_edit.edit_outcomes import EditOutcomes
from caret_ls.next_edit.next_edits import EditState, NextEdits
from caret_ls.outcome_queue import OutcomeQueue
from caret_ls.outcome_tracker import (
    EditorOutcome,
    EditorOutcomeEvent,
    OutcomeTracker,
    ShownSuggestion,
)
from caret_ls.pinned_files import PinnedFiles
from caret_ls.policy_cache import PolicyCache
from caret_ls.recent_files import RecentFiles
from caret_ls.settings import Settings
from caret_ls.status_board import ServerStatus, SignedOutReason, StatusBoard
from caret_ls.suggestion import Suggestion
from caret_ls.suggestion_cache import SuggestionCache
from caret_ls.text_document import Position, TextEdit
from caret_ls.typing_counter import TypingCount, is_typed
from caret_ls.workspace import OpenFile, OpenFiles

UPKEEP_EVERY_S: Final = 5.0  # between two runs of the periodic work
_MAX_WARMED_CHARS: Final = 200_000  # only a small part of a longer file would fit into the prompt
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TextChange:
    """A change of a file, as in LSP: `text` replaces the range from `start` to `end`."""

    text: str
    start: Position | None = None  # None: the text replaces the whole file
    end: Position | None = None


class Session:
    """A session. It knows nothing about LSP. Create it on a running event loop."""

    def __init__(
        self,
        settings: Settings,
        clock: LoopClock,
        send_status: Callable[[ServerStatus], None],
        *,
        send_grown: Callable[[str], None] = lambda _: None,
        upkeep_every_s: float = UPKEEP_EVERY_S,
    ) -> None:
        """`send_grown` gets the URI of a file whose suggestion has more text now."""
        self._clock = clock
        self._send_grown = send_grown
        self._upkeep_every_s = upkeep_every_s
        self._typing = TypingCount()
        self._recency = RecentFiles()
        self._pinned = PinnedFiles(clock)
        self._git_heads: dict[Repository, GitHead | None] = {}  # None: HEAD could not be read
        self.board = StatusBoard(send_status, is_paused=not settings.enabled)
        self.files = OpenFiles()
        self.cache = SuggestionCache()
        self.link = GatewayConnection(self, Backoff(random.random), clock, tick_s=upkeep_every_s)
        self._outcome_queue = OutcomeQueue(self.link.send, clock)
        self._gateway_url: str | None = None  # None: no gateway yet
        # None: there is a key, or the settings have not been applied yet.
        self._no_key_reason: SignedOutReason | None = None
        self.outcomes = OutcomeTracker(self._send_outcome)
        self.definitions = DefinitionLookup(
            self.files, clock, can_send=self._can_send, excluded_globs=self._excluded_globs
        )
        self.debouncer = Debouncer(min_delay_ms=settings.debounce_ms)
        self.policies = PolicyCache(
            lambda repository: self.link.send(frames.build_policy_query(repository))
        )
        handlers = ResponseHandlers(self.cache, self.debouncer, self.policies, self.board, clock)
        new_id = _make_id_generator()
        self._client = CompletionClient(
            self.link,
            handlers,
            build_request_context=self._build_context,
            new_id=new_id,
            on_grown=self._on_grown,
        )
        state = ProviderState(
            self.files, self.cache, self.debouncer, self.outcomes, self.policies, self.board, clock
        )
        self.completions = CompletionProvider(state, self._client, settings)
        self.alternatives = Alternatives(
            self.files, self.link, build_request_context=self._build_context, new_id=new_id
        )
        writer_state = WriterState(
            self.files, self.board, self._modes_of, self._can_send, self._build_context, new_id
        )
        self.docstrings = DocstringWriter(writer_state, self.link)
        self.chat = self._create_chat()
        self.next_edits = self._create_next_edits(new_id)

    def _create_chat(self) -> Chat:
        state = ChatState(
            self.files,
            self.board,
            self._modes_of,
            self._can_send,
            self._build_context,
            get_address=lambda: self.link.address,
            on_refused=self.policies.invalidate,
        )
        return Chat(state, stream_chat)

    def _create_next_edits(self, new_id: Callable[[], str]) -> NextEdits:
        state = EditState(
            self.files,
            self.board,
            self.policies,
            self._client,
            self._build_context,
            self._excluded_globs,
            get_settings=lambda: self.settings,
            now_s=self._clock.monotonic_s,
            new_id=new_id,
            on_applied=self._on_edit_applied,
        )
        return NextEdits(state, self.link, EditOutcomes(self._send_outcome))

    @property
    def settings(self) -> Settings:
        return self.completions.settings

    def set_up(
        self,
        settings: Settings,
        address: Address | None,
        *,
        no_key_reason: SignedOutReason = SignedOutReason.NO_KEY,
    ) -> None:
        """Apply settings. A pause by the user continues, unless `settings.enabled` has changed.

        `no_key_reason` tells why there is no API key, if `address` is None.
        """
        if settings.enabled != self.settings.enabled:
            self.board.set(is_paused=not settings.enabled)
        self.completions.settings = settings
        self.debouncer.min_delay_ms = settings.debounce_ms
        self._no_key_reason = no_key_reason if address is None else None
        if address is None:
            self.board.set(signed_out_reason=no_key_reason)
        elif address.url != self._gateway_url:
            self._gateway_url = address.url
            self._outcome_queue.clear()
        self.link.set_address(address)  # the gateway decides whether the API key is valid

    async def run(self) -> None:
        """Run forever."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.link.run())
            group.create_task(self._run_upkeep_forever())

    # --- events of the editor

    def open(self, uri: str, language: str, text: str, *, version: int = 0) -> None:
        if self.files.get(uri) is not None:  # some editors reopen a file to reload it
            self.close(uri)
        file = self.files.open(uri, language, text)
        file.version = version
        if file.repository is not None and file.repository not in self._git_heads:
            self._git_heads[file.repository] = read_head(file.repository)
        self._recency.on_open(uri, file.path)
        self._warm_up(file)

    def change(self, uri: str, changes: Sequence[TextChange], *, version: int = 0) -> None:
        file = self.files.get(uri)
        if file is None:
            return
        file.version = version
        for change in changes:
            if change.start is None or change.end is None:
                self._record_edit(file, file.change_all(change.text))
            else:
                self._record_edit(file, file.change(change.start, change.end, change.text))

    def close(self, uri: str) -> None:
        self.completions.cancel(uri)
        self.outcomes.close(uri, self._clock.monotonic_s())
        self.next_edits.on_close(uri)
        self._recency.on_close(uri)
        self.cache.remove(uri)
        self.alternatives.close(uri)
        self.definitions.on_close(uri)
        self.files.close(uri)

    def select(self, uri: str, *, has_selection: bool) -> None:
        file = self.files.get(uri)
        if file is not None:
            file.has_selection = has_selection

    def look_up_definitions(self, uri: str, position: Position) -> None:
        if self.settings.definitions:
            self.definitions.look_up(uri, position)

    def dismiss(self, uri: str) -> None:
        """Note that the user has hidden the suggestion."""
        self.outcomes.dismiss(uri, self._clock.monotonic_s())
        self.completions.on_rejected(uri)

    def on_displayed(self, uri: str) -> None:
        """Note that the suggestion is on the screen."""
        self.outcomes.on_displayed(uri, self._clock.monotonic_s())

    def accept(self, id: str) -> None:
        self.outcomes.accept(id, self._clock.monotonic_s())
        self.debouncer.on_accepted()

    # --- events of the gateway

    def on_state(self, state: ConnectionState) -> None:
        _log.info("link.%s", state)
        is_connected = state is ConnectionState.CONNECTED
        # Before the first settings, there is no API key that the gateway could have refused.
        is_refused = state is ConnectionState.UNAUTHENTICATED and self._gateway_url is not None
        reason = SignedOutReason.KEY_REFUSED if is_refused else None
        self.board.set(is_connected=is_connected, signed_out_reason=self._no_key_reason or reason)
        if is_connected:
            self._client.resume()
            self.policies.on_reconnect()
            for file in self.files:
                self.policies.get(file.repository_name, self._clock.monotonic_s())  # queries it
            self._outcome_queue.on_reconnect()

    def on_frame(self, frame: Frame) -> None:
        if frame.get("type") == "policy":
            self.policies.update(frame)
        else:
            _log.info("link.frame type=%s code=%s", frame.get("type"), frame.get("code"))

    # --- periodic work

    async def _run_upkeep_forever(self) -> None:
        while True:
            await asyncio.sleep(self._upkeep_every_s)
            try:
                self.run_upkeep()
            except Exception as error:  # noqa: BLE001  # suggestions must continue
                _log.error("upkeep.failed kind=%s", type(error).__name__)

    def run_upkeep(self) -> None:
        now_s = self._clock.monotonic_s()
        self.outcomes.check_persistence(self._text_of, now_s)
        self.outcomes.report_long_shown(now_s)
        self.next_edits.report_long_shown()
        self._outcome_queue.flush()
        chars = self._typing.take_due(now_s)
        if chars is not None:
            self.link.send(frames.build_typing(chars))
        self._check_git_heads()

    def _check_git_heads(self) -> None:
        """Forget suggestions and warm up files again if the HEAD of their repository has changed.

        HEAD changes when the user switches branches, pulls, commits or rebases.
        """
        for repository in {file.repository for file in self.files if file.repository}:
            head = read_head(repository)
            previous = self._git_heads.setdefault(repository, head)
            if head == previous:
                continue
            self._git_heads[repository] = head
            _log.info("repository.%s", _name_head_change(previous, head))
            for file in self.files:
                if file.repository == repository:
                    self.cache.remove(file.uri)
                    self._warm_up(file)

    # --- internals

    def _record_edit(self, file: OpenFile, edit: TextEdit) -> None:
        if not edit.deleted and not edit.inserted:
            return  # text was replaced by the same text
        now_s = self._clock.monotonic_s()
        self.debouncer.on_keystroke(now_s)
        self._recency.on_edit(file.uri, at=edit.at, now_s=self._clock.wall_s())
        if alternative := self.alternatives.find_inserted(file.uri, edit):
            self.outcomes.show(file.uri, alternative, now_s=now_s)  # then accepted, below
        event = self.outcomes.change(file.uri, edit, now_s)
        if event is EditorOutcomeEvent.REJECTED:
            self.debouncer.on_rejected()
            self.completions.on_rejected(file.uri)
        elif event is not None:  # accepted, as a whole or in part
            self.debouncer.on_accepted()
        elif is_typed(edit):
            self._typing.add(file.language)
        self.next_edits.on_change(file, edit)

    def _warm_up(self, file: OpenFile) -> None:
        if self._can_send(file) and len(file.text) <= _MAX_WARMED_CHARS:
            request_context = self._build_context(file)
            self.link.send(
                frames.build_file_opened(file.path, file.language, file.text, request_context)
            )

    def _modes_of(self, repository: str) -> frozenset[str]:
        return self.policies.get(repository, self._clock.monotonic_s()).modes

    def _can_send(self, file: OpenFile) -> bool:
        is_allowed = not is_excluded(file.path, self._excluded_globs(file))
        return file.kind is FileKind.NORMAL and is_allowed

    def _excluded_globs(self, file: OpenFile) -> tuple[str, ...]:
        policy = self.policies.get(file.repository_name, self._clock.monotonic_s())
        return (*policy.excluded_globs, *self.settings.excluded_globs)

    def _build_context(self, current_file: OpenFile) -> RequestContext:
        """Build the context of a request, and note that the user is in the file."""
        self._recency.on_view(current_file.uri)
        globs = self._excluded_globs(current_file)
        pinned = [
            file
            for file in self._pinned.list(current_file.repository)
            if file.path != current_file.path and not is_excluded(file.path, globs)
        ]
        pinned_paths = {file.path for file in pinned}
        other_files = self._recency.list(
            current_file.uri, partial(self._find_context_text, current_file, pinned_paths)
        )
        return RequestContext(
            files=(*pinned, *other_files),
            definitions=(self.definitions.list(current_file) if self.settings.definitions else ()),
            repository=current_file.repository_name,
            framework=current_file.framework,
            imports=current_file.imports,
        )

    def _find_context_text(
        self, current_file: OpenFile, pinned_paths: Collection[str], uri: str
    ) -> str | None:
        """Return the text of the file `uri` as context; None: it must not be sent, or is pinned."""
        file = self.files.get(uri)
        if file is None or file.repository != current_file.repository or not self._can_send(file):
            return None
        return None if file.path in pinned_paths else file.text

    def _text_of(self, uri: str) -> str | None:
        file = self.files.get(uri)
        return None if file is None else file.text

    def _on_grown(self, suggestion: Suggestion) -> None:
        self.outcomes.grow(
            suggestion.id,
            suggestion.text,
            is_whole=suggestion.is_whole,
            request_id=suggestion.request_id,
            now_s=self._clock.monotonic_s(),
        )
        self.alternatives.on_grown(suggestion.uri)
        self._send_grown(suggestion.uri)

    def _on_edit_applied(self, uri: str, applied: ShownSuggestion) -> None:
        self.outcomes.track_accepted(uri, applied, now_s=self._clock.monotonic_s())

    def _send_outcome(self, outcome: EditorOutcome) -> None:
        self._outcome_queue.add(
            frames.build_outcome(outcome, shares_text=self.settings.share_accepted_text)
        )


def _make_id_generator() -> Callable[[], str]:
    """Return a function that returns a new request ID, unique across connections."""
    prefix, numbers = secrets.token_hex(4), count(1)
    return lambda: f"{prefix}-{next(numbers)}"


def _name_head_change(previous: GitHead | None, current: GitHead | None) -> str:  # for the log
    is_switch = (previous and previous.branch) != (current and current.branch)
    return "switched" if is_switch else "moved"
