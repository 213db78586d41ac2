"""The Redis lock: only one worker runs a locked task, however long it takes."""

import secrets
import time

import pytest

from tenants.base.redis_connection import connect
from tenants.base.redis_lock import redis_lock

HOLD_S = 1.0


@pytest.fixture
def name() -> str:
    return f"test-{secrets.token_hex(4)}"


def test_a_second_one_is_not_alone_and_the_next_is(name: str) -> None:
    with redis_lock(connect(), name) as is_first, redis_lock(connect(), name) as is_second:
        assert is_first
        assert not is_second

    with redis_lock(connect(), name) as is_next:
        assert is_next


def test_another_name_is_anothers(name: str) -> None:
    with redis_lock(connect(), name), redis_lock(connect(), f"{name}-too") as is_alone:
        assert is_alone


def test_a_run_that_takes_longer_than_the_hold_stays_alone(name: str) -> None:
    with redis_lock(connect(), name, hold_s=HOLD_S):
        time.sleep(2 * HOLD_S)

        with redis_lock(connect(), name) as is_alone:
            assert not is_alone


def test_one_that_was_killed_lets_go(name: str) -> None:
    connect().set(f"caret:lock:{name}", "its word", px=int(HOLD_S * 1_000))

    time.sleep(1.5 * HOLD_S)

    with redis_lock(connect(), name) as is_alone:
        assert is_alone


def test_who_was_too_slow_lets_nothing_go_that_is_anothers(name: str) -> None:
    with redis_lock(connect(), name):
        connect().set(f"caret:lock:{name}", "another's")

    with redis_lock(connect(), name) as is_alone:
        assert not is_alone
