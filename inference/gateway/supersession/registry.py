"""Latest-wins: a user's request supersedes their older requests for the same file, on any gateway.

A connection cancels its own older requests before a new one starts. This module works across a
user's connections, protocols and gateways. Rules:

1. The later request wins. On one gateway, times are compared by the monotonic clock. Between
   gateways, they are compared by the wall clock. At equal times the larger request ID wins.
2. A prefetch supersedes only prefetches, because the user does not wait for it yet. Chats
   supersede only chats, edits only edits, and nothing else supersedes them. Warm-ups neither
   supersede nor are superseded.
3. A request without a path neither supersedes nor is superseded. The same applies to a request with
   a service key, because many people may share the key.
4. Gateways exchange a keyed digest, never a path. Claims are published in the background, so no
   request waits for the publication.
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
_SEPARATE_MODES: Final = frozenset({Mode.CHAT, Mode.EDIT})


class RequestClaim(msgspec.Struct, frozen=True, array_like=True):
    """A message to the other gateways: a request has started, and supersedes older ones."""

    subject: bytes  # digest of tenant, user, repository, path and the group of the mode
    occurred_at_ms: int  # Unix milliseconds of the request
    request_id: str
    is_prefetch: bool

    def is_superseding(self, other: "RequestClaim") -> bool:
        """Return whether this claim supersedes one of the same subject on another gateway."""
        is_later = self._order > other._order
        return is_later and _can_supersede_claim(self, other)

    @property
    def _order(self) -> tuple[int, str]:
        return self.occurred_at_ms, self.request_id


class ClaimPublisher(Protocol):
    def publish(self, claim: RequestClaim) -> None:
        """Publish the claim to other gateways soon, without waiting."""


@dataclass(frozen=True, slots=True, eq=False)
class _RunningRequest:
    claim: RequestClaim
    received_s: float  # monotonic seconds
    task: asyncio.Task[object]

    def is_superseding(self, other: "_RunningRequest") -> bool:
        """Return whether this request supersedes one of the same subject on this gateway.

        Monotonic times are compared, because the wall clock may have been set in between.
        """
        return self._order > other._order and _can_supersede_claim(self.claim, other.claim)

    @property
    def _order(self) -> tuple[float, str]:
        return self.received_s, self.claim.request_id


def supersession_group(mode: str) -> str:
    """Return the group of a mode. A request supersedes only requests of its group."""
    return mode if mode in _SEPARATE_MODES else ""


def can_supersede(*, newer_is_prefetch: bool, older_is_prefetch: bool) -> bool:
    """Return whether the newer of two requests supersedes the older one.

    Both must be for the same file and in the same `supersession_group`.
    """
    return older_is_prefetch or not newer_is_prefetch


def _can_supersede_claim(newer: RequestClaim, older: RequestClaim) -> bool:
    return can_supersede(newer_is_prefetch=newer.is_prefetch, older_is_prefetch=older.is_prefetch)


class SupersessionRegistry:
    """The requests in flight on this gateway, by subject."""

    def __init__(self, root_secret: bytes, publisher: ClaimPublisher) -> None:
        self._digest_key = derive_key(root_secret, "supersession/1")
        self._publisher = publisher
        self._running: defaultdict[bytes, list[_RunningRequest]] = defaultdict(list)

    @property
    def num_running(self) -> int:
        return sum(map(len, self._running.values()))

    @contextmanager
    def claim(
        self, principal: Principal, request: CompletionRequest, trace: RequestTrace
    ) -> Iterator[None]:
        """Cancel the older requests of the same subject, and hold the claim until the block ends.

        Leave the block before the client is told that its request has ended. Otherwise a newer
        request could cancel the task while it sends that message. Raises CompletionDropped
        (superseded) if a newer request is already in flight here.
        """
        claim = self._make_claim(principal, request, trace)
        task = asyncio.current_task()
        if claim is None or task is None:
            yield
            return
        running = _RunningRequest(claim, trace.arrival.received_s, task)
        self._supersede_by(running)
        self._publisher.publish(claim)
        self._running[claim.subject].append(running)
        try:
            yield
        finally:
            self._remove(running)

    def on_remote_claim(self, newer: RequestClaim) -> None:
        """Supersede requests here that are older than a claim of another gateway."""
        for running in self._running.get(newer.subject, ()):
            if newer.is_superseding(running.claim):
                _cancel_superseded(running)

    def _supersede_by(self, newer: _RunningRequest) -> None:
        """Supersede all older requests.

        Raises CompletionDropped if a newer request is in flight here.
        """
        others = self._running.get(newer.claim.subject, ())
        if any(other.is_superseding(newer) for other in others):
            raise CompletionDropped(FinishReason.SUPERSEDED)
        for other in others:
            if newer.is_superseding(other):
                _cancel_superseded(other)

    def _make_claim(
        self, principal: Principal, request: CompletionRequest, trace: RequestTrace
    ) -> RequestClaim | None:
        user_id = principal.credential.user_id
        if user_id is None or not request.path or request.is_warm_up:
            return None
        names = (principal.snapshot.tenant_id, user_id, request.repository, request.path)
        subject = "\0".join((*names, supersession_group(request.mode)))
        digest = hashlib.blake2b(
            subject.encode("utf-8", "replace"), key=self._digest_key, digest_size=_DIGEST_BYTES
        )
        return RequestClaim(
            subject=digest.digest(),
            occurred_at_ms=trace.arrival.occurred_at_ms,
            request_id=trace.arrival.request_id,
            is_prefetch=request.trigger is Trigger.PREFETCH,
        )

    def _remove(self, running: _RunningRequest) -> None:
        subject = running.claim.subject
        self._running[subject].remove(running)
        if not self._running[subject]:
            del self._running[subject]


def _cancel_superseded(running: _RunningRequest) -> None:
    # A request that is already being cancelled must be able to send the end to its client.
    if not running.task.cancelling():
        running.task.cancel(FinishReason.SUPERSEDED.value)
