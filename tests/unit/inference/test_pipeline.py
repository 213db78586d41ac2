"""The complete pipeline, over fakes: its order, its endings, and its cleanup."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from structlog.testing import capture_logs

from caret.contracts.api_key import KeyKind, generate_key
from caret.contracts.policy import Mode, TenantPolicy, Tier
from caret.contracts.usage import CompletionRecord, FinishReason
from inference.context.prompt.prompt_options import PromptOptions
from inference.context.prompt.prompt_writer import PromptWriter
from inference.context.sources.snippet_source import NullSnippetSource
from inference.errors import EngineError
from inference.filtering.filter_reason import FilterReason
from inference.gateway.load_shedding.concurrency_limit import ConcurrencyLimiter
from inference.gateway.protocol.late_outcomes import LateOutcomeRecorder
from inference.gateway.protocol.recent_suggestions import RecentSuggestions
from inference.gateway.rate_limits.body_quota import BodyQuota
from inference.gateway.snapshots.snapshot_store import SnapshotStore
from inference.pipeline import DataPlane, complete, serve
from inference.prefix_cache.warmup import WarmupQueue
from inference.recording.record import Recorder
from inference.routing.pool_selection import PoolSelector
from tests.fakes.client import FakeClient
from tests.fakes.clock import FakeClock
from tests.fakes.engine import FakeEngine, chunks_of
from tests.fakes.gateway import TOKENIZER
from tests.fakes.journal import FakeJournal
from tests.fakes.polling import wait_until
from tests.fakes.pools import make_admission, make_pool, make_pools, make_router
from tests.fakes.requests import make_arrival
from tests.fakes.tenants import ROOT_SECRET, make_credential, make_policy, make_snapshot

WRITER = PromptWriter(
    TOKENIZER,
    model="demo",
    max_context_tokens=8_192,
    clock=FakeClock(),
    options=PromptOptions(has_token_healing=False),
)
KEY = generate_key(KeyKind.DEVELOPER)
SECRET = "hunter2"
# More than the 8,192 tokens of WRITER's context. A raw prompt is never shortened to fit.
TOO_LONG: dict[str, Any] = {"prefix": "x " * 9_000, "is_raw": True}


@dataclass
class Gateway:
    engine: FakeEngine = field(default_factory=lambda: FakeEngine(chunks_of("b", "c")))
    policy: TenantPolicy = field(default_factory=make_policy)
    clock: FakeClock = field(default_factory=FakeClock)
    journal: FakeJournal = field(default_factory=FakeJournal)
    concurrency: ConcurrencyLimiter = field(default_factory=lambda: ConcurrencyLimiter(max_total=2))

    def plane(self) -> DataPlane:
        snapshot_store = SnapshotStore(root_secret=ROOT_SECRET, clock=self.clock, max_age_s=300)
        snapshot_store.replace(make_snapshot(make_credential(KEY), policy=self.policy))
        snapshot_store.mark_synced()
        return DataPlane(
            clock=self.clock,
            snapshots=snapshot_store,
            admission=make_admission(concurrency=self.concurrency),
            prompt_writers={make_pool(tier=tier).name: WRITER for tier in Tier},
            snippets=NullSnippetSource(),
            pool_selector=PoolSelector(make_pools()),
            router=make_router(clock=self.clock),
            engine=self.engine,
            recorder=Recorder(journal=self.journal, clock=self.clock),
            suggestions=RecentSuggestions(clock=self.clock, append_record=self.journal.append),
            late_outcomes=LateOutcomeRecorder(clock=self.clock, append_record=self.journal.append),
            warmup_queue=WarmupQueue(self.clock),
            body_quota=BodyQuota(),
        )

    async def serve(
        self, client: FakeClient, *, key_text: str | None = KEY.text, **fields: Any
    ) -> None:
        await serve(
            self.plane(), make_arrival(key_text=key_text, clock=self.clock, **fields), client
        )

    @property
    def endings(self) -> list[tuple[FinishReason, str]]:
        return [(record.finish_reason, record.error_code) for record in self.journal.completions]


async def test_a_completion_passes_all_stages() -> None:
    gateway, client = Gateway(), FakeClient()

    await gateway.serve(client)

    assert ("".join(client.texts), client.ends) == ("bc", ["done"])
    assert gateway.endings == [(FinishReason.STOP, "")]
    assert (gateway.engine.num_open, gateway.concurrency.num_in_flight) == (0, 0)


@pytest.mark.parametrize(
    ("mode", "pool"), [(Mode.INLINE, "demo-fast"), (Mode.BLOCK, "demo-quality")]
)
async def test_the_tier_decides_the_pool(mode: Mode, pool: str) -> None:
    gateway = Gateway()

    await gateway.serve(FakeClient(), mode=mode.value)

    assert [record.pool for record in gateway.journal.completions] == [pool]


async def test_the_request_is_validated_before_the_key() -> None:
    client = FakeClient()

    await Gateway().serve(client, key_text=None, mode="nonsense")

    assert client.ends == ["unknown_mode"]


async def test_the_key_is_checked_before_the_policy() -> None:
    client = FakeClient()

    await Gateway(policy=make_policy(features=frozenset())).serve(client, key_text=None)

    assert client.ends == ["missing_api_key"]


async def test_the_policy_is_checked_before_the_prompt() -> None:
    client = FakeClient()

    await Gateway(policy=make_policy(features=frozenset())).serve(client, **TOO_LONG)

    assert client.ends == ["feature_disabled"]


async def test_a_prompt_that_is_too_long_never_reaches_an_engine() -> None:
    gateway, client = Gateway(), FakeClient()

    await gateway.serve(client, **TOO_LONG)

    assert client.ends == ["prompt_too_long"]
    assert gateway.engine.requests == []
    assert gateway.concurrency.num_in_flight == 0


@pytest.mark.parametrize(
    "key_text",
    [None, "nonsense", generate_key(KeyKind.DEVELOPER).text],
    ids=["no key", "not a key", "unknown key"],
)
async def test_an_unauthenticated_request_is_not_recorded_and_reaches_no_engine(
    key_text: str | None,
) -> None:
    gateway, client = Gateway(), FakeClient()

    await gateway.serve(client, key_text=key_text)

    assert gateway.journal.records == []
    assert gateway.engine.requests == []


async def test_a_rejection_by_the_policy_is_recorded() -> None:
    gateway = Gateway(policy=make_policy(features=frozenset()))

    await gateway.serve(FakeClient())

    assert gateway.endings == [(FinishReason.ERROR, "feature_disabled")]


async def test_a_rejection_by_a_full_gateway_is_recorded() -> None:
    gateway, client = Gateway(concurrency=ConcurrencyLimiter(max_total=0)), FakeClient()

    await gateway.serve(client)

    assert client.ends == ["gateway_at_capacity"]
    assert gateway.endings == [(FinishReason.ERROR, "gateway_at_capacity")]


async def test_text_sent_before_the_engine_disconnects_is_kept() -> None:
    engine = FakeEngine(
        chunks_of("b", stop=None), error=EngineError("engine_disconnected", "It ended.")
    )
    gateway, client = Gateway(engine=engine), FakeClient()

    await gateway.serve(client)

    assert ("".join(client.texts), client.ends) == ("b", ["done"])
    # The text is cut off, so the finish reason is `length`. The filter reason says why the text was
    # cut off.
    assert gateway.endings == [(FinishReason.LENGTH, "")]
    (record,) = gateway.journal.records
    assert isinstance(record, CompletionRecord)
    assert record.filter_reason == FilterReason.ENGINE_DISCONNECTED
    assert gateway.concurrency.num_in_flight == 0


async def test_an_engine_that_disconnects_before_any_text_is_reported_and_recorded() -> None:
    engine = FakeEngine(error=EngineError("engine_disconnected", "It ended."))
    gateway, client = Gateway(engine=engine), FakeClient()

    await gateway.serve(client)

    assert client.ends == ["engine_disconnected"]
    assert gateway.endings == [(FinishReason.ERROR, "engine_disconnected")]
    assert gateway.concurrency.num_in_flight == 0


async def test_an_internal_error_is_reported_and_logged_without_its_message() -> None:
    engine = FakeEngine(chunks_of("b", stop=None), error=ValueError(SECRET))
    gateway, client = Gateway(engine=engine), FakeClient()

    with capture_logs() as logs:
        await gateway.serve(client, prefix=SECRET)

    assert client.ends == ["internal_error"]
    assert gateway.endings == [(FinishReason.ERROR, "internal_error")]
    assert [(entry["event"], entry["error"]) for entry in logs] == [
        ("completion.internal_error", "ValueError")
    ]
    assert SECRET not in f"{logs} {client.messages}"


async def test_a_regular_completion_logs_nothing() -> None:
    with capture_logs() as logs:
        await Gateway().serve(FakeClient(), prefix=SECRET)

    assert logs == []


@pytest.mark.parametrize("finish_reason", [FinishReason.CANCELLED, FinishReason.SUPERSEDED])
async def test_a_cancelled_completion_frees_its_slot_and_its_engine(
    finish_reason: FinishReason,
) -> None:
    gateway = Gateway(engine=FakeEngine(chunks_of("b", stop=None), hangs=True))
    client = FakeClient()
    task = await _start_hanging_completion(gateway, client)

    # A cancellation with a finish reason gets a last frame; without one, the connection is gone.
    task.cancel(finish_reason.value)
    await asyncio.gather(task, return_exceptions=True)

    assert client.ends == ["done"]
    assert gateway.endings == [(finish_reason, "")]
    assert (gateway.engine.num_open, gateway.concurrency.num_in_flight) == (0, 0)


async def _start_hanging_completion(gateway: Gateway, client: FakeClient) -> asyncio.Task[None]:
    task = asyncio.create_task(gateway.serve(client))
    await wait_until(lambda: bool(client.texts))
    return task


@pytest.mark.parametrize("num_read", [0, 1])
async def test_a_client_that_leaves_frees_the_slot_and_the_engine(num_read: int) -> None:
    engine = FakeEngine(chunks_of("b", "c", "d", stop=None), hangs=True)
    gateway, client = Gateway(engine=engine), FakeClient(leaves_after=num_read)

    await gateway.serve(client)

    assert gateway.endings == [(FinishReason.CANCELLED, "")]
    assert (engine.num_open, gateway.concurrency.num_in_flight) == (0, 0)


async def test_a_closed_connection_frees_the_slot_and_the_engine() -> None:
    gateway = Gateway(engine=FakeEngine(chunks_of("b", stop=None), hangs=True))
    client = FakeClient()
    task = await _start_hanging_completion(gateway, client)

    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert client.ends == []
    assert gateway.endings == [(FinishReason.CANCELLED, "")]
    assert (gateway.engine.num_open, gateway.concurrency.num_in_flight) == (0, 0)


async def test_an_engine_error_is_recorded_even_if_the_client_has_left() -> None:
    engine = FakeEngine(error_at_start=EngineError("engine_unavailable", ""))
    gateway = Gateway(engine=engine)

    await gateway.serve(FakeClient(leaves_after=0))

    assert gateway.endings == [(FinishReason.ERROR, "engine_unavailable")]


async def test_complete_raises_an_internal_error() -> None:
    gateway = Gateway(engine=FakeEngine(error=ValueError("planted")))

    with pytest.raises(ValueError, match="planted"):
        await complete(
            gateway.plane(), make_arrival(key_text=KEY.text, clock=gateway.clock), FakeClient()
        )
