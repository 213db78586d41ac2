"""Tenant keys are cached for at most a minute."""

from uuid import UUID

from tenants.security.encryption.key_cache import HOLD_S, MAX_HELD, KeyCache
from tests.fakes.clock import FakeClock

FIRST, SECOND = UUID(int=1), UUID(int=2)


def create_cache(clock: FakeClock) -> KeyCache:
    cache = KeyCache(clock.monotonic_s)
    cache.set(FIRST, b"key")
    return cache


def test_a_key_is_cached() -> None:
    assert create_cache(FakeClock()).get(FIRST) == b"key"


def test_another_key_is_not_cached() -> None:
    assert create_cache(FakeClock()).get(SECOND) is None


def test_a_key_expires_after_a_minute() -> None:
    clock = FakeClock()
    cache = create_cache(clock)

    clock.pass_s(HOLD_S)

    assert cache.get(FIRST) is None


def test_expired_keys_are_evicted_by_the_next_access() -> None:
    clock = FakeClock()
    cache = create_cache(clock)
    clock.pass_s(HOLD_S)

    cache.get(SECOND)

    assert not cache._keys


def test_a_removed_key_is_gone() -> None:
    cache = create_cache(FakeClock())

    cache.remove(FIRST)

    assert cache.get(FIRST) is None


def test_the_oldest_key_is_evicted_from_a_full_cache() -> None:
    cache = create_cache(FakeClock())

    for number in range(MAX_HELD):
        cache.set(UUID(int=100 + number), b"")

    assert cache.get(FIRST) is None
    assert cache.get(UUID(int=100)) == b""
