"""Recently tokenised lines are not tokenised again, for the same holder only."""

import pytest
from detect_secrets.util.filetype import FileType

from caret.contracts.policy import Isolation
from caret.contracts.snapshot import TenantSnapshot
from inference.context.tokenization.line_cache import LineCache
from inference.context.tokenization.tokenizer import Tokenizer
from inference.context.tokenization.ttl_cache import LIFETIME_S, CachePartitions, PartitionKey
from tests.fakes.clock import FakeClock
from tests.fakes.gateway import TOKENS
from tests.fakes.tenants import GLOBEX, GUS, make_policy, make_principal

TEXT = "def f(x):\n    return x\n\n\nclass A:\n    pass\n"
ADAS, GUSS = PartitionKey(b"a" * 32), PartitionKey(b"g" * 32)
PYTHON, INI = FileType.PYTHON, FileType.INI


class Counting:
    """The demonstration tokenizer, with a count of the lines that it encoded."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tokens: Tokenizer = TOKENS
        self.num_lines = 0
        encode_lines = self.tokens.encode_lines

        def counting(lines: list[str]) -> list[list[int]]:
            self.num_lines += len(lines)
            return encode_lines(lines)

        monkeypatch.setattr(self.tokens, "encode_lines", counting)


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Counting:
    return Counting(monkeypatch)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def cache(counting: Counting, clock: FakeClock) -> LineCache:
    return LineCache(counting.tokens, clock)


def _encode(
    cache: LineCache, text: str, holder: PartitionKey, kind: FileType = PYTHON
) -> list[int]:
    encoded = cache.encode(cache._tokens.split_lines(text), holder, kind)
    return [token for line in encoded for token in line]


def test_the_tokens_are_those_of_the_tokenizer(cache: LineCache) -> None:
    expected = TOKENS.encode(TEXT)

    first, second = _encode(cache, TEXT, ADAS), _encode(cache, TEXT, ADAS)

    assert first == second == expected


def test_only_the_line_that_was_typed_is_tokenised(cache: LineCache, counting: Counting) -> None:
    _encode(cache, TEXT, ADAS)
    counting.num_lines = 0

    _encode(cache, TEXT.replace("pass", "passe"), ADAS)

    assert counting.num_lines == 1


def test_a_neighbours_lines_are_tokenised_for_him_anew(
    cache: LineCache, counting: Counting
) -> None:
    _encode(cache, TEXT, ADAS)
    before, counting.num_lines = counting.num_lines, 0

    _encode(cache, TEXT, GUSS)

    assert counting.num_lines == before


@pytest.mark.parametrize("step_s", [2 * LIFETIME_S + 1, LIFETIME_S + 1])
def test_what_was_not_used_for_two_lifetimes_is_forgotten(
    cache: LineCache, counting: Counting, clock: FakeClock, step_s: float
) -> None:
    _encode(cache, TEXT, ADAS)
    for _ in range(2):
        clock.pass_s(step_s)
        _encode(cache, "other\ntext\n", ADAS)
    counting.num_lines = 0

    _encode(cache, TEXT, ADAS)

    assert counting.num_lines > 0


def test_what_is_used_stays(cache: LineCache, counting: Counting, clock: FakeClock) -> None:
    _encode(cache, TEXT, ADAS)
    counting.num_lines = 0

    for _ in range(5):
        clock.pass_s(LIFETIME_S * 0.9)
        _encode(cache, TEXT, ADAS)

    assert counting.num_lines == 0


def test_it_holds_so_many_lines(counting: Counting, clock: FakeClock) -> None:
    cache = LineCache(counting.tokens, clock, max_tokens=16)

    for number in range(50):
        _encode(cache, f"a{number}\nb{number}\n", ADAS)

    assert len(cache._memory) <= 12


def test_half_of_a_surrogate_pair_is_no_obstacle(cache: LineCache) -> None:
    assert _encode(cache, "a = '\ud800'\nb\n", ADAS)


def test_a_lines_secrets_are_gone(cache: LineCache) -> None:
    secret = _encode(cache, "password = 'hunter2-and-more'\n", ADAS)

    assert secret == cache._tokens.encode("password = 'REDACTED'\n")


def test_the_same_line_may_be_a_secret_in_another_kind_of_file(cache: LineCache) -> None:
    line = "password: hunter2x\n"

    assert _encode(cache, line, ADAS, PYTHON) != _encode(cache, line, ADAS, INI)


HOLDERS = CachePartitions()


def _holder(**fields: object) -> PartitionKey:
    return HOLDERS.for_principal(make_principal(**fields))  # type: ignore[arg-type]  # any of its fields


def test_tenants_are_different_holders() -> None:
    assert _holder() != _holder(tenant_id=GLOBEX)


def test_users_are_different_holders_in_strict_isolation_only() -> None:
    strict = make_policy(isolation=Isolation.STRICT)

    assert _holder() == _holder(user_id=GUS)
    assert _holder(policy=strict) != _holder(policy=strict, user_id=GUS)


def test_another_process_has_other_holders() -> None:
    assert HOLDERS.for_principal(make_principal()) != CachePartitions().for_principal(
        make_principal()
    )


def test_a_purged_cache_is_another_holder() -> None:
    assert isinstance(make_principal().snapshot, TenantSnapshot)
    assert _holder(cache_epoch=1) != _holder(cache_epoch=2)
