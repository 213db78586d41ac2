"""The Redis lock: only one worker runs a locked task, however long it takes."""

import secrets
from threading import Event

import pytest

from tenants.base import redis_lock as redis_lock_module
from tenants.base.redis_connection import connect_to_redis
from tenants.base.redis_lock import redis_lock
from tests.stack.waiting import wait_until

HOLD_S = 60.0  # the lock expires after this time, unless it is renewed


@pytest.fixture
def name() -> str:
    return f"test-{secrets.token_hex(4)}"


def test_a_second_holder_is_refused_until_the_release(name: str) -> None:
    with (
        redis_lock(connect_to_redis(), name) as is_first,
        redis_lock(connect_to_redis(), name) as is_second,
    ):
        assert is_first
        assert not is_second

    with redis_lock(connect_to_redis(), name) as is_next:
        assert is_next


def test_locks_with_different_names_are_independent(name: str) -> None:
    with (
        redis_lock(connect_to_redis(), name),
        redis_lock(connect_to_redis(), f"{name}-too") as has_other_lock,
    ):
        assert has_other_lock


def test_a_lock_is_renewed_during_a_long_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waits_s: list[float | None] = []

    class ShortEvent(Event):
        """Records how long a wait would take, and waits for a hundredth of this time."""

        def wait(self, timeout: float | None = None) -> bool:
            waits_s.append(timeout)
            return super().wait((timeout or 0.0) / 100)

    monkeypatch.setattr(redis_lock_module, "Event", ShortEvent)
    connection, lock_key = connect_to_redis(), f"caret:lock:{name}"
    with redis_lock(connection, name, hold_s=HOLD_S):
        half_ms = int(HOLD_S * 1_000 / 2)  # as if half of the time had passed
        connection.pexpire(lock_key, half_ms)
        wait_until(lambda: connection.pttl(lock_key) > half_ms, timeout_s=HOLD_S / 3)

        with redis_lock(connection, name) as has_lock:
            assert not has_lock

    assert waits_s[0] is not None
    assert waits_s[0] < HOLD_S / 2


def test_a_killed_holders_lock_expires(name: str) -> None:
    connect_to_redis().set(f"caret:lock:{name}", "a killed process", px=200)

    wait_until(lambda: _can_lock(name), timeout_s=HOLD_S)


def _can_lock(name: str) -> bool:
    with redis_lock(connect_to_redis(), name) as has_lock:
        return has_lock


def test_a_slow_holder_does_not_release_anothers_lock(name: str) -> None:
    with redis_lock(connect_to_redis(), name):
        # As if this holder's lock had expired, and another process had acquired it.
        connect_to_redis().set(f"caret:lock:{name}", "another process")

    with redis_lock(connect_to_redis(), name) as has_lock:
        assert not has_lock
