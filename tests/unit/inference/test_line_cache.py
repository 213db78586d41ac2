"""Lines that were tokenised a moment ago are not tokenised again, for their holder only."""

import pytest

from caret.contracts.policy import Isolation
from caret.contracts.snapshot import TenantSnapshot
from inference.context.line_cache import LIFETIME_S, LineCache
from inference.context.tokens import Tokens, load_tokens
from tests.fakes.clock import FakeClock
from tests.fakes.gateway import WEIGHTS
from tests.fakes.tenants import GLOBEX, GUS, make_policy, make_principal

TEXT = "def f(x):\n    return x\n\n\nclass A:\n    pass\n"
ADAS, GUSS = b"a" * 32, b"g" * 32


class Counting:
    """The demonstration tokenizer, and how many lines it was asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tokens: Tokens = load_tokens(str(WEIGHTS))
        self.num_lines = 0
        encode_each = self.tokens.encode_each

        def counting(texts: list[str]) -> list[list[int]]:
            self.num_lines += len(texts)
            return encode_each(texts)

        monkeypatch.setattr(self.tokens, "encode_each", counting)


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Counting:
    return Counting(monkeypatch)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def cache(counting: Counting, clock: FakeClock) -> LineCache:
    return LineCache(counting.tokens, clock)


def test_the_tokens_are_those_of_the_tokenizer(cache: LineCache) -> None:
    expected = load_tokens(str(WEIGHTS)).encode(TEXT)

    first, second = cache.encode(TEXT, ADAS), cache.encode(TEXT, ADAS)

    assert first == second == expected


def test_only_the_line_that_was_typed_is_tokenised(cache: LineCache, counting: Counting) -> None:
    cache.encode(TEXT, ADAS)
    counting.num_lines = 0

    cache.encode(TEXT.replace("pass", "passe"), ADAS)

    assert counting.num_lines == 1


def test_a_neighbours_lines_are_tokenised_for_him_anew(
    cache: LineCache, counting: Counting
) -> None:
    cache.encode(TEXT, ADAS)
    before, counting.num_lines = counting.num_lines, 0

    cache.encode(TEXT, GUSS)

    assert counting.num_lines == before


@pytest.mark.parametrize("step_s", [2 * LIFETIME_S + 1, LIFETIME_S + 1])
def test_what_was_not_used_for_two_lifetimes_is_forgotten(
    cache: LineCache, counting: Counting, clock: FakeClock, step_s: float
) -> None:
    cache.encode(TEXT, ADAS)
    for _ in range(2):
        clock.pass_s(step_s)
        cache.encode("other\ntext\n", ADAS)
    counting.num_lines = 0

    cache.encode(TEXT, ADAS)

    assert counting.num_lines > 0


def test_what_is_used_stays(cache: LineCache, counting: Counting, clock: FakeClock) -> None:
    cache.encode(TEXT, ADAS)
    counting.num_lines = 0

    for _ in range(5):
        clock.pass_s(LIFETIME_S * 0.9)
        cache.encode(TEXT, ADAS)

    assert counting.num_lines == 0


def test_it_holds_so_many_lines(counting: Counting, clock: FakeClock) -> None:
    cache = LineCache(counting.tokens, clock, max_lines=4)

    for number in range(50):
        cache.encode(f"a{number}\nb{number}\n", ADAS)

    assert len(cache._young) + len(cache._old) <= 12


def test_half_of_a_surrogate_pair_is_no_obstacle(cache: LineCache) -> None:
    assert cache.encode("a = '\ud800'\nb\n", ADAS)


def _holder(cache: LineCache, **fields: object) -> bytes:
    return cache.holder_of(make_principal(**fields))  # type: ignore[arg-type]  # any of its fields


def test_tenants_are_different_holders(cache: LineCache) -> None:
    assert _holder(cache) != _holder(cache, tenant_id=GLOBEX)


def test_users_are_different_holders_in_strict_isolation_only(cache: LineCache) -> None:
    strict = make_policy(isolation=Isolation.STRICT)

    assert _holder(cache) == _holder(cache, user_id=GUS)
    assert _holder(cache, policy=strict) != _holder(cache, policy=strict, user_id=GUS)


def test_another_process_has_other_holders(counting: Counting, clock: FakeClock) -> None:
    one, other = LineCache(counting.tokens, clock), LineCache(counting.tokens, clock)

    assert _holder(one) != _holder(other)


def test_a_purged_cache_is_another_holder(cache: LineCache) -> None:
    assert isinstance(make_principal().snapshot, TenantSnapshot)
    assert _holder(cache, cache_epoch=1) != _holder(cache, cache_epoch=2)
