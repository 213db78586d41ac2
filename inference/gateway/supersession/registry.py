"""Newest wins: a user's request for a file makes the ones before it worthless, wherever they run.

On one connection `connection` sees to it before anything is begun; here it holds across a user's
connections, protocols and gateways. Rules:

1. The later arrival wins. Of two on one gateway the monotonic clock says which that is; between
   gateways the wall clock. Of two at one moment the larger request id.
2. A prefetch supersedes prefetches only: somebody waits for the others. A chat is superseded by
   chats only. Warm-ups stand aside.
3. Without a path, or with a service key (it may stand for many people), nothing is superseded.
4. What travels between gateways is a keyed digest, never a path. It is announced in the background:
   no request waits for it.
"""

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from caret.contracts.policy import Mode, Trigger
from caret.contracts.usage import FinishReason
from caret.foundation.crypto.key_derivation import derive_key
from inference.completion.request import CompletionRequest, Principal
from inference.completion.request_trace import RequestTrace
from inference.errors import CompletionDropped

_DIGEST_BYTES: Final = 16


class RequestClaim(msgspec.Struct, frozen=True, array_like=True):
    """A request that has begun, as other gateways hear of it."""

    subject: bytes  # digest of tenant, user, repository, path and whether it is a chat
    occurred_at_ms: int
    request_id: str
    is_prefetch: bool

    def is_superseding(self, other: "RequestClaim") -> bool:
        """Of another of the same subject, on another gateway."""
        is_later = self._order > other._order
        return is_later and _is_superseding(self, other)

    @property
    def _order(self) -> tuple[int, str]:
        return self.occurred_at_ms, self.request_id


class ClaimPublisher(Protocol):
    def publish(self, claim: RequestClaim) -> None:
        """Lets the other gateways know, soon; never waits."""


@dataclass(frozen=True, slots=True, eq=False)
class _RunningRequest:
    claim: RequestClaim
    received_s: float  # monotonic seconds
    task: asyncio.Task[object]

    def is_superseding(self, other: "_RunningRequest") -> bool:
        """Of another here, of the same subject: the wall clock may have been set in between."""
        return self._order > other._order and _is_superseding(self.claim, other.claim)

    @property
    def _order(self) -> tuple[float, str]:
        return self.received_s, self.claim.request_id


def is_superseding(*, newer_is_prefetch: bool, older_is_prefetch: bool) -> bool:
    return older_is_prefetch or not newer_is_prefetch


def _is_superseding(newer: RequestClaim, older: RequestClaim) -> bool:
    return is_superseding(newer_is_prefetch=newer.is_prefetch, older_is_prefetch=older.is_prefetch)


class SupersessionRegistry:
    """The requests under way on this gateway, by whom and what they are for."""

    def __init__(self, root_secret: bytes, announcer: ClaimPublisher) -> None:
        self._key = derive_key(root_secret, "newest/1")
        self._announcer = announcer
        self._running: defaultdict[bytes, list[_RunningRequest]] = defaultdict(list)

    @property
    def num_running(self) -> int:
        return sum(map(len, self._running.values()))

    @contextmanager
    def claim(
        self, principal: Principal, request: CompletionRequest, account: RequestTrace
    ) -> Iterator[None]:
        """Supersedes what is older, by cancelling its task. Raises Dropped (superseded) when a
        newer one is here already. Must be left before the client is told of the end."""
        claim = self._make_claim(principal, request, account)
        task = asyncio.current_task()
        if claim is None or task is None:
            yield
            return
        running = _RunningRequest(claim, account.arrival.received_s, task)
        self._supersede_by(running)
        self._announcer.publish(claim)
        self._running[claim.subject].append(running)
        try:
            yield
        finally:
            self._remove(running)

    def on_remote_claim(self, newer: RequestClaim) -> None:
        """Of a request on another gateway."""
        for running in self._running.get(newer.subject, ()):
            if newer.is_superseding(running.claim):
                _supersede(running)

    def _supersede_by(self, newer: _RunningRequest) -> None:
        """Raises Dropped (superseded) when it is not the newest; then it supersedes nothing."""
        others = self._running.get(newer.claim.subject, ())
        if any(other.is_superseding(newer) for other in others):
            raise CompletionDropped(FinishReason.SUPERSEDED)
        for other in others:
            if newer.is_superseding(other):
                _supersede(other)

    def _make_claim(
        self, principal: Principal, request: CompletionRequest, account: RequestTrace
    ) -> RequestClaim | None:
        user_id = principal.credential.user_id
        if user_id is None or not request.path or request.is_warm_up:
            return None
        is_chat = request.mode is Mode.CHAT
        names = (principal.snapshot.tenant_id, user_id, request.repository, request.path)
        subject = "\0".join((*names, "chat" if is_chat else ""))
        digest = hashlib.blake2b(
            subject.encode("utf-8", "replace"), key=self._key, digest_size=_DIGEST_BYTES
        )
        return RequestClaim(
            subject=digest.digest(),
            occurred_at_ms=account.arrival.occurred_at_ms,
            request_id=account.arrival.request_id,
            is_prefetch=request.trigger is Trigger.PREFETCH,
        )

    def _remove(self, running: _RunningRequest) -> None:
        subject = running.claim.subject
        self._running[subject].remove(running)
        if not self._running[subject]:
            del self._running[subject]


def _supersede(running: _RunningRequest) -> None:
    # One that is being cancelled already must not be disturbed in telling its end.
    if not running.task.cancelling():
        running.task.cancel(FinishReason.SUPERSEDED.value)
