"""Tenant keys are cached for a minute, and no longer."""

from uuid import UUID

from tenants.security.encryption.key_cache import HOLD_S, MAX_HELD, KeyCache
from tests.fakes.clock import FakeClock

FIRST, SECOND = UUID(int=1), UUID(int=2)


def make(clock: FakeClock) -> KeyCache:
    held = KeyCache(clock.monotonic_s)
    held.set(FIRST, b"key")
    return held


def test_a_key_is_held() -> None:
    assert make(FakeClock()).get(FIRST) == b"key"


def test_another_key_is_not() -> None:
    assert make(FakeClock()).get(SECOND) is None


def test_after_a_minute_it_is_forgotten() -> None:
    clock = FakeClock()
    held = make(clock)

    clock.pass_s(HOLD_S)

    assert held.get(FIRST) is None


def test_what_nobody_asks_for_is_forgotten_with_the_next_question() -> None:
    clock = FakeClock()
    held = make(clock)
    clock.pass_s(HOLD_S)

    held.get(SECOND)

    assert not held._keys


def test_a_dropped_key_is_gone() -> None:
    held = make(FakeClock())

    held.remove(FIRST)

    assert held.get(FIRST) is None


def test_the_oldest_goes_when_there_are_too_many() -> None:
    held = make(FakeClock())

    for number in range(MAX_HELD):
        held.set(UUID(int=100 + number), b"")

    assert held.get(FIRST) is None
    assert held.get(UUID(int=100)) == b""
