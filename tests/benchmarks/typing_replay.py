"""Replays of editing sessions in real time, and the suggestions that arrived after each change."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from tests.benchmarks.edit_sessions import Change

KEY_PRESS_KINDS: Final = ("typing", "correction")  # the kinds of changes that are key presses
_MAX_PAUSE_S: Final = 2.0  # longer pauses of a session are shortened
_LAST_PAUSE_S: Final = 1.0  # after the last change, while its suggestion arrives


@dataclass(frozen=True, slots=True)
class Answer:
    id: str  # of the suggestion
    after_ms: float  # since the change
    whole_after_ms: float  # since the change, until the suggestion stopped growing


@dataclass(slots=True)
class ReplayedChange:
    """A change, and the suggestion that arrived before the next change."""

    kind: str
    pause_s: float  # until the next change
    # None: there was no suggestion, or the next change came before it.
    answer: Answer | None = None

    @property
    def is_key_press(self) -> bool:
        return self.kind in KEY_PRESS_KINDS


@dataclass(slots=True)
class Replay:
    changes: list[ReplayedChange] = field(default_factory=list)


class Typist:
    """Replays sessions in real time.

    `ask` applies a change and returns the ID of the suggestion after it, or "" if there is none.
    The next change cancels `ask`. `wait_grown` waits until the suggestion has more text.
    """

    def __init__(
        self, ask: Callable[[Change], Any], wait_grown: Callable[[], Any] | None = None
    ) -> None:
        self._ask = ask
        self._wait_grown = wait_grown

    async def play(self, changes: Sequence[Change], replay: Replay) -> None:
        gaps_s = [(after.at_ms - before.at_ms) / 1000 for before, after in pairwise(changes)]
        for change, gap_s in zip(changes, [*gaps_s, _LAST_PAUSE_S], strict=True):
            replayed = ReplayedChange(change.kind, pause_s=min(max(gap_s, 0.0), _MAX_PAUSE_S))
            replay.changes.append(replayed)
            suggestion = asyncio.create_task(self._record_answers(change, replayed))
            await asyncio.sleep(replayed.pause_s)
            suggestion.cancel()
            await asyncio.wait([suggestion])
            if not suggestion.cancelled():
                suggestion.result()  # raises the task's error, if it failed

    async def _record_answers(self, change: Change, replayed: ReplayedChange) -> None:
        """Store the suggestion in `replayed`, and update its times as long as it grows."""
        began_s = time.perf_counter()
        identifier = await self._ask(change)
        while identifier:
            now_ms = (time.perf_counter() - began_s) * 1000
            first_ms = replayed.answer.after_ms if replayed.answer else now_ms
            replayed.answer = Answer(identifier, first_ms, now_ms)
            if self._wait_grown is None:
                return
            await self._wait_grown()
