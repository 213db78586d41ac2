"""Requests in languages for which speculation does not pay go to replicas without it."""

from collections.abc import Mapping
from dataclasses import replace

from inference.completion.request_trace import RequestTrace
from inference.pools.cache_isolation import SpeculationMethod as Method
from inference.pools.pool_config import Pool, Replica
from inference.pools.speculation.speculative_decoding import SpeculationTracker
from inference.routing.route import Router, route
from tests.fakes.clock import FakeClock
from tests.fakes.pools import make_pool, make_pools, make_router
from tests.fakes.requests import make_account, make_admitted, make_prompt, make_request

PLAIN, DRAFTING = make_pool("http://one:1", "http://two:1").replicas
DRAFTING = replace(DRAFTING, speculation=Method.NGRAM)
MIXED = replace(make_pool(), replicas=(PLAIN, DRAFTING))
PATHS = [f"src/{n}.py" for n in range(60)]


class FakeReader:
    """The counters of one engine."""

    def __init__(self) -> None:
        self.counters = dict.fromkeys(
            (
                "vllm:generation_tokens_total",
                "vllm:spec_decode_num_draft_tokens_total",
                "vllm:spec_decode_num_accepted_tokens_total",
            ),
            0.0,
        )
        self.is_away = False

    async def read(self, _replica: Replica) -> Mapping[str, list[float]] | None:
        if self.is_away:
            return None
        return {name: [value] for name, value in self.counters.items()}

    def generates(self, tokens: int, *, drafted: float, accepted: float) -> None:
        for name, more in zip(self.counters, (tokens, drafted, accepted), strict=True):
            self.counters[name] += more


def _account(language: str, tokens: int, *, replica: Replica = DRAFTING) -> RequestTrace:
    account = make_account()
    account.request = make_request(language=language)
    account.pool, account.replica, account.generated_tokens = MIXED.name, replica.name, tokens
    return account


def _serves(speculation: SpeculationTracker, account: RequestTrace) -> None:
    speculation.on_started(account)
    speculation.on_completed(account)


async def _learnt(
    *, accepted: float = 10, foreign: int = 0, pool: Pool = MIXED
) -> SpeculationTracker:
    """Return a tracker after forty windows: python is accepted, html as given."""
    reader = FakeReader()
    speculation = SpeculationTracker(make_pools(pool), reader, FakeClock())
    await speculation.poll()
    for number in range(40):
        language, taken = ("html", accepted) if number % 2 else ("python", 90)
        _serves(speculation, _account(language, 100))
        reader.generates(100 + foreign, drafted=100, accepted=taken)
        await speculation.poll()
    return speculation


async def test_a_language_whose_drafts_are_not_accepted_does_not_suit() -> None:
    speculation = await _learnt()

    assert not speculation.is_profitable(MIXED.name, "html")
    assert speculation.is_profitable(MIXED.name, "python")
    assert speculation.is_profitable(MIXED.name, "rust")


async def test_one_pools_language_is_not_anothers() -> None:
    assert (await _learnt()).is_profitable("another", "html")


async def test_windows_with_much_of_somebody_elses_say_nothing() -> None:
    speculation = await _learnt(foreign=100)

    assert speculation.estimates == {}


async def test_a_pool_without_another_replica_is_not_looked_at() -> None:
    speculation = await _learnt(pool=replace(MIXED, replicas=(DRAFTING,)))

    assert speculation.estimates == {}


async def test_an_engine_that_was_restarted_counts_from_there() -> None:
    reader = FakeReader()
    speculation = SpeculationTracker(make_pools(MIXED), reader, FakeClock())
    await speculation.poll()
    for number in range(40):
        _serves(speculation, _account("html", 100))
        reader.generates(100, drafted=100, accepted=10)
        if number == 20:
            reader.counters = dict.fromkeys(reader.counters, 0.0)
        await speculation.poll()

    assert not speculation.is_profitable(MIXED.name, "html")


async def test_an_engine_that_does_not_answer_is_looked_at_later() -> None:
    reader = FakeReader()
    speculation = SpeculationTracker(make_pools(MIXED), reader, FakeClock())
    await speculation.poll()
    for number in range(60):
        _serves(speculation, _account("html", 100))
        reader.generates(100, drafted=100, accepted=10)
        reader.is_away = number % 2 == 0
        await speculation.poll()

    assert not speculation.is_profitable(MIXED.name, "html")


async def test_completions_longer_than_a_window_are_counted_where_they_generate() -> None:
    reader = FakeReader()
    speculation = SpeculationTracker(make_pools(MIXED), reader, FakeClock())
    await speculation.poll()
    account = _account("html", 0)
    for number in range(60):
        if number % 5 == 0:  # one ends, the next begins
            speculation.on_completed(account)
            account = _account("html", 0)
            speculation.on_started(account)
        account.generated_tokens += 100
        reader.generates(100, drafted=100, accepted=10)
        await speculation.poll()

    assert not speculation.is_profitable(MIXED.name, "html")


async def test_nothing_is_held_of_completions_that_have_ended() -> None:
    speculation = SpeculationTracker(make_pools(MIXED), FakeReader(), FakeClock())

    _serves(speculation, _account("html", 100))

    assert not speculation._under_way


def _replicas_of(router: Router, language: str) -> set[str]:
    return {
        route(router, make_admitted(path=path, language=language), make_prompt()).replica.name
        for path in PATHS
    }


async def test_its_requests_go_to_the_replicas_without_and_the_others_to_all() -> None:
    router = make_router(MIXED, speculation=await _learnt())

    assert _replicas_of(router, "html") == {PLAIN.name}
    assert _replicas_of(router, "python") == {PLAIN.name, DRAFTING.name}


async def test_when_nobody_else_is_well_the_drafting_replica_is_asked_all_the_same() -> None:
    router = make_router(MIXED, speculation=await _learnt())
    for _ in range(3):
        with router.replicas.attempt(PLAIN) as attempt:
            attempt.mark_failed()

    assert _replicas_of(router, "html") == {DRAFTING.name}
