"""The Redis lock: only one worker runs a locked task, however long it takes."""

import secrets
import time

import pytest

from tenants.base.redis_connection import connect_to_redis
from tenants.base.redis_lock import redis_lock

HOLD_S = 1.0  # the lock expires after this time, unless it is renewed


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


def test_a_lock_is_renewed_during_a_long_run(name: str) -> None:
    with redis_lock(connect_to_redis(), name, hold_s=HOLD_S):
        time.sleep(2 * HOLD_S)

        with redis_lock(connect_to_redis(), name) as has_lock:
            assert not has_lock


def test_a_killed_holders_lock_expires(name: str) -> None:
    connect_to_redis().set(f"caret:lock:{name}", "a killed process", px=int(HOLD_S * 1_000))

    time.sleep(1.5 * HOLD_S)

    with redis_lock(connect_to_redis(), name) as has_lock:
        assert has_lock


def test_a_slow_holder_does_not_release_anothers_lock(name: str) -> None:
    with redis_lock(connect_to_redis(), name):
        # As if this holder's lock had expired, and another process had acquired it.
        connect_to_redis().set(f"caret:lock:{name}", "another process")

    with redis_lock(connect_to_redis(), name) as has_lock:
        assert not has_lock
