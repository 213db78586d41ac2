"""Recently tokenized lines are not tokenized again within a partition of the cache.

A partition belongs to a tenant or, in strict isolation, to a user.
"""

import pytest
from detect_secrets.util.filetype import FileType

from caret.contracts.policy import Isolation
from inference.context.tokenization.line_cache import LineCache
from inference.context.tokenization.tokenizer import Tokenizer
from inference.context.tokenization.ttl_cache import LIFETIME_S, CachePartitions, PartitionKey
from tests.fakes.clock import FakeClock
from tests.fakes.gateway import TOKENIZER
from tests.fakes.tenants import GLOBEX, GUS, make_policy, make_principal

TEXT = "def f(x):\n    return x\n\n\nclass A:\n    pass\n"
ADA_PARTITION, GUS_PARTITION = PartitionKey(b"a" * 32), PartitionKey(b"g" * 32)
PYTHON, INI = FileType.PYTHON, FileType.INI


class CountingTokenizer:
    """The demonstration tokenizer, with a count of the lines that it encoded."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tokenizer: Tokenizer = TOKENIZER
        self.num_lines = 0
        encode_lines = self.tokenizer.encode_lines

        def encode_and_count(lines: list[str]) -> list[list[int]]:
            self.num_lines += len(lines)
            return encode_lines(lines)

        monkeypatch.setattr(self.tokenizer, "encode_lines", encode_and_count)


@pytest.fixture
def counting_tokenizer(monkeypatch: pytest.MonkeyPatch) -> CountingTokenizer:
    return CountingTokenizer(monkeypatch)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def cache(counting_tokenizer: CountingTokenizer, clock: FakeClock) -> LineCache:
    return LineCache(counting_tokenizer.tokenizer, clock)


def _encode(
    cache: LineCache, text: str, partition: PartitionKey, kind: FileType = PYTHON
) -> list[int]:
    encoded = cache.encode(cache._tokenizer.split_lines(text), partition, kind)
    return [token_id for line in encoded for token_id in line]


def test_the_tokens_equal_those_of_the_tokenizer(cache: LineCache) -> None:
    expected = TOKENIZER.encode(TEXT)

    first, second = _encode(cache, TEXT, ADA_PARTITION), _encode(cache, TEXT, ADA_PARTITION)

    assert first == second == expected


def test_only_a_changed_line_is_tokenized(
    cache: LineCache, counting_tokenizer: CountingTokenizer
) -> None:
    _encode(cache, TEXT, ADA_PARTITION)
    counting_tokenizer.num_lines = 0

    _encode(cache, TEXT.replace("pass", "passe"), ADA_PARTITION)

    assert counting_tokenizer.num_lines == 1


def test_lines_of_another_partition_are_tokenized_again(
    cache: LineCache, counting_tokenizer: CountingTokenizer
) -> None:
    _encode(cache, TEXT, ADA_PARTITION)
    num_lines_of_text = counting_tokenizer.num_lines
    counting_tokenizer.num_lines = 0

    _encode(cache, TEXT, GUS_PARTITION)

    assert counting_tokenizer.num_lines == num_lines_of_text


@pytest.mark.parametrize("step_s", [2 * LIFETIME_S + 1, LIFETIME_S + 1])
def test_lines_unused_for_two_lifetimes_are_evicted(
    cache: LineCache, counting_tokenizer: CountingTokenizer, clock: FakeClock, step_s: float
) -> None:
    _encode(cache, TEXT, ADA_PARTITION)
    for _ in range(2):
        clock.pass_s(step_s)
        _encode(cache, "other\ntext\n", ADA_PARTITION)
    counting_tokenizer.num_lines = 0

    _encode(cache, TEXT, ADA_PARTITION)

    assert counting_tokenizer.num_lines > 0


def test_lines_in_use_are_kept(
    cache: LineCache, counting_tokenizer: CountingTokenizer, clock: FakeClock
) -> None:
    _encode(cache, TEXT, ADA_PARTITION)
    counting_tokenizer.num_lines = 0

    for _ in range(5):
        clock.pass_s(LIFETIME_S * 0.9)
        _encode(cache, TEXT, ADA_PARTITION)

    assert counting_tokenizer.num_lines == 0


def test_the_number_of_lines_is_limited(
    counting_tokenizer: CountingTokenizer, clock: FakeClock
) -> None:
    cache = LineCache(counting_tokenizer.tokenizer, clock, max_tokens=16)

    for number in range(50):
        _encode(cache, f"a{number}\nb{number}\n", ADA_PARTITION)

    # A line counts as its tokens and four more. A partition keeps two generations of lines.
    # Without the limit, it would keep about 100 lines.
    assert len(cache._cache) <= 12


def test_half_a_surrogate_pair_is_accepted(cache: LineCache) -> None:
    assert _encode(cache, "a = '\ud800'\nb\n", ADA_PARTITION)


def test_secrets_in_a_line_are_redacted(cache: LineCache) -> None:
    token_ids = _encode(cache, "password = 'hunter2-and-more'\n", ADA_PARTITION)

    assert token_ids == cache._tokenizer.encode("password = 'REDACTED'\n")


def test_redaction_depends_on_the_kind_of_file(cache: LineCache) -> None:
    line = "password: hunter2x\n"

    assert _encode(cache, line, ADA_PARTITION, PYTHON) != _encode(cache, line, ADA_PARTITION, INI)


PARTITIONS = CachePartitions()


def _partition(**fields: object) -> PartitionKey:
    return PARTITIONS.for_principal(make_principal(**fields))  # type: ignore[arg-type]  # any of its fields


def test_tenants_are_different_partitions() -> None:
    assert _partition() != _partition(tenant_id=GLOBEX)


def test_users_are_different_partitions_only_in_strict_isolation() -> None:
    strict = make_policy(isolation=Isolation.STRICT)

    assert _partition() == _partition(user_id=GUS)
    assert _partition(policy=strict) != _partition(policy=strict, user_id=GUS)


def test_another_process_has_other_partition_keys() -> None:
    assert PARTITIONS.for_principal(make_principal()) != CachePartitions().for_principal(
        make_principal()
    )


def test_a_new_cache_epoch_is_a_different_partition() -> None:
    assert _partition(cache_epoch=1) == _partition(cache_epoch=1)
    assert _partition(cache_epoch=1) != _partition(cache_epoch=2)
