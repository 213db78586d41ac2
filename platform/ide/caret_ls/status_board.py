"""The status that the editor may show (`$/caret/status`), computed from conditions.

The board sends nothing to the editor itself: it calls `on_change`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class ServerStatus(StrEnum):
    READY = "ready"
    WORKING = "working"
    PAUSED = "paused"
    OFFLINE = "offline"
    SIGNED_OUT = "signed_out"
    OVER_BUDGET = "over_budget"


class SignedOutReason(StrEnum):
    NO_KEY = "no_key"  # there is no API key
    KEY_FILE_NOT_PRIVATE = "key_file_not_private"  # other users have permissions for its file
    KEY_REFUSED = "key_refused"  # the gateway refuses it: revoked, expired or wrong


@dataclass(slots=True)
class StatusBoard:
    """The conditions that decide the status.

    `on_change` is called with the status when the status, or the reason for being signed out, has
    changed.
    """

    on_change: Callable[[ServerStatus], None]
    is_paused: bool = False
    signed_out_reason: SignedOutReason | None = None  # None: signed in
    is_connected: bool = False
    is_over_budget: bool = False
    num_in_flight: int = 0  # requests that a user waits for
    # The status and reason at the last call of `on_change`; None: it was not called yet.
    _last: tuple[ServerStatus, SignedOutReason | None] | None = None

    def set(self, **changes: bool | SignedOutReason | None) -> None:
        """Set conditions; the names of `changes` are those of the fields."""
        for name, value in changes.items():
            setattr(self, name, value)
        self._notify_if_changed()

    def on_request_started(self) -> None:
        self.num_in_flight += 1
        self._notify_if_changed()

    def on_request_ended(self) -> None:
        self.num_in_flight -= 1
        self._notify_if_changed()

    @property
    def status(self) -> ServerStatus:
        """The status. If several conditions are true, the first in this list decides."""
        conditions = (
            (self.is_paused, ServerStatus.PAUSED),
            (self.signed_out_reason is not None, ServerStatus.SIGNED_OUT),
            (not self.is_connected, ServerStatus.OFFLINE),
            (self.is_over_budget, ServerStatus.OVER_BUDGET),
            (self.num_in_flight > 0, ServerStatus.WORKING),
        )
        return next((status for is_true, status in conditions if is_true), ServerStatus.READY)

    def _notify_if_changed(self) -> None:
        current = (self.status, self.signed_out_reason)
        if current != self._last:
            self._last = current
            self.on_change(self.status)
