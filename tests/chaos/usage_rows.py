"""The rows of the usage table, of all tenants of a run, and the wait until they are balanced."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final

import psycopg

from tests.chaos.billing_check import Balance, Row, balance
from tests.chaos.client_log import Note
from tests.chaos.clients import MAX_REQUEST_S
from tests.chaos.environment import World

_POLL_S: Final = 0.5


def rows_of(world: World, tenants: Sequence[str]) -> Iterator[Row]:
    """Read rows as the application's role, with row-level security limited to each tenant.

    Raises psycopg.OperationalError while the database is down.
    """
    address = world.database.app_database_url.read_text().strip()
    for tenant in tenants:
        with psycopg.connect(address) as connection:
            # `true`: only for this transaction.
            connection.execute("SELECT set_config('caret.tenant', %s, true)", [tenant])
            rows = connection.execute(
                "SELECT request_id, prompt_tokens, generated_tokens FROM tenants_usage_record"
            )
            for request_id, prompt, generated in rows:
                yield Row(str(request_id), prompt, generated)


def settled_balance(
    world: World, read_notes: Callable[[], Sequence[Note]], *, timeout_s: float
) -> tuple[Balance, float]:
    """Wait until everything noted by now is billed, or until `timeout_s` has passed.

    Returns the balance and the seconds that it took. Raises TimeoutError if the database stays
    down.
    """
    began_s = time.monotonic()
    notes = list(read_notes())
    tenants = sorted({note.tenant for note in notes})
    while True:
        # Taken before the rows are read, so that they are read once more after the deadline.
        is_over = time.monotonic() > began_s + timeout_s
        with suppress(psycopg.OperationalError):
            rows = list(rows_of(world, tenants))
            took_s = time.monotonic() - began_s
            if is_over or not balance(notes, rows, later_notes=()).missing:
                return _balance_with_later_notes(notes, rows, read_notes), took_s
        if is_over:
            raise TimeoutError("The database is still down.")
        world.revive()
        time.sleep(_POLL_S)


def _balance_with_later_notes(
    notes: Sequence[Note], rows: Sequence[Row], read_notes: Callable[[], Sequence[Note]]
) -> Balance:
    """Compare the same rows with more and more notes.

    Ends when all is balanced, or when all requests in flight must have ended. A completion may be
    billed before its client notes its end, so a row can exist before its note.
    """
    deadline_s = time.monotonic() + MAX_REQUEST_S
    while True:
        # The notes only grow, so those after the first `len(notes)` are new.
        current = balance(notes, rows, later_notes=read_notes()[len(notes) :])
        if current.is_balanced or time.monotonic() > deadline_s:
            return current
        time.sleep(_POLL_S)
