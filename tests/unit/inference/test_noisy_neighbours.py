"""Isolation: one tenant, key or request cannot affect the others, even with hostile input."""

import json
from pathlib import Path
from typing import cast

import pytest
from redis.asyncio import Redis
from tokenizers import Tokenizer as HfTokenizer

from caret.contracts.api_key import KeyKind, generate_key
from caret.contracts.policy import Mode
from caret.contracts.usage import SPANS_S, OutcomeEvent
from caret.foundation.ids import KeyId
from inference.completion.request import AdmittedRequest
from inference.completion.variant import NO_VARIANT
from inference.context.assemble import assemble
from inference.context.prompt.prompt_writer import PromptWriter
from inference.context.tokenization.tokenizer import Tokenizer
from inference.errors import BadRequest, TooManyRequests, UnauthenticatedRequest
from inference.filtering.truncation.truncation_context import build_truncation_context
from inference.gateway.authenticate import authenticate
from inference.gateway.load_shedding.concurrency_limit import ConcurrencyLimiter
from inference.gateway.snapshots.snapshot_feed import SnapshotFeed
from inference.gateway.snapshots.snapshot_store import SnapshotStore
from inference.recording.journal import FileJournal
from tests.fakes.clock import FakeClock
from tests.fakes.gateway import TOKENIZER, WEIGHTS
from tests.fakes.journal_shipper import FakeShipper
from tests.fakes.redis import FakeRedis
from tests.fakes.requests import make_request
from tests.fakes.stream_client import open_editor
from tests.fakes.tenants import (
    ACME,
    GLOBEX,
    ROOT_SECRET,
    make_credential,
    make_principal,
    make_snapshot,
)
from tests.fakes.usage import make_record

MAX_AGE_S = 300


def test_a_tenant_leaves_slots_free_whatever_its_policy_says() -> None:
    concurrency = ConcurrencyLimiter(max_total=8)  # of which a tenant may have a quarter

    with (
        concurrency.acquire(ACME, max_of_tenant=10_000),
        concurrency.acquire(ACME, max_of_tenant=10_000),
        pytest.raises(TooManyRequests),
        concurrency.acquire(ACME, max_of_tenant=10_000),
    ):
        pass


async def test_a_snapshot_that_stays_unreadable_locks_only_its_own_tenant() -> None:
    clock, redis = FakeClock(), FakeRedis()
    snapshot_store = SnapshotStore(root_secret=ROOT_SECRET, clock=clock, max_age_s=MAX_AGE_S)
    feed = SnapshotFeed(cast(Redis, redis), snapshot_store, clock=clock)
    key, neighbours_key = generate_key(KeyKind.DEVELOPER), generate_key(KeyKind.DEVELOPER)
    redis.publish_snapshot(make_snapshot(make_credential(key)))
    redis.publish_snapshot(make_snapshot(make_credential(neighbours_key), tenant_id=GLOBEX))
    await feed.sync()
    redis.publish_bytes(ACME, 9, b"damage")
    await feed.sync()

    clock.pass_s(MAX_AGE_S + 1)
    await feed.sync()

    principal = authenticate(snapshot_store, neighbours_key.text, now_ms=0, address=None)
    assert principal.snapshot.tenant_id == GLOBEX
    with pytest.raises(UnauthenticatedRequest, match="snapshots_stale"):
        authenticate(snapshot_store, key.text, now_ms=0, address=None)


async def test_an_unreadable_snapshot_is_read_again_without_another_change() -> None:
    redis = FakeRedis()
    snapshot_store = SnapshotStore(root_secret=ROOT_SECRET, clock=FakeClock(), max_age_s=MAX_AGE_S)
    feed = SnapshotFeed(cast(Redis, redis), snapshot_store, clock=FakeClock())
    redis.publish_bytes(ACME, 1, b"damage")
    await feed.sync()
    redis.repair_snapshot(make_snapshot(version=1))

    await feed.sync()

    assert snapshot_store.versions == {ACME: 1}


def test_the_connections_of_a_key_are_limited() -> None:
    # Each open connection watches its key.
    snapshot_store = SnapshotStore(
        root_secret=ROOT_SECRET, clock=FakeClock(), max_age_s=MAX_AGE_S, max_watchers=1
    )

    with (
        snapshot_store.watch_key(KeyId("key-1"), lambda: None),
        snapshot_store.watch_key(KeyId("key-2"), lambda: None),
        pytest.raises(TooManyRequests, match="too_many_connections"),
        snapshot_store.watch_key(KeyId("key-1"), lambda: None),
    ):
        pass


@pytest.mark.parametrize("event", [OutcomeEvent.SHOWN, OutcomeEvent.ACCEPTED])
async def test_an_outcome_is_recorded_once(event: OutcomeEvent) -> None:
    async with open_editor() as editor:
        await editor.says("complete", "1")
        await editor.waits_for_end("1")

        for _ in range(40):
            await editor.says("outcome", "1", event=event.value)

        assert len(editor.journal.outcomes) == 1
        assert editor.ends("1")[-1] == "duplicate_outcome"


async def test_persistence_is_recorded_once_for_each_time_span() -> None:
    async with open_editor() as editor:
        await editor.says("complete", "1")
        await editor.waits_for_end("1")

        for after_ms in range(1_000, 2_000_000, 50_000):
            await editor.says(
                "outcome", "1", event="persisted", after_ms=after_ms, edited_ratio=0.1
            )

        spans = {outcome.span_s for outcome in editor.journal.outcomes}
        assert len(editor.journal.outcomes) == len(spans) <= len(SPANS_S)
        assert max(SPANS_S) in spans
        assert editor.ends("1")[-1] == "duplicate_outcome"


def test_a_raw_prompt_that_is_much_too_long_is_not_tokenized(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A raw prompt is a whole prompt that the client wrote."""
    writer = PromptWriter(TOKENIZER, model="demo", max_context_tokens=8_192, clock=FakeClock())
    encoded_texts: list[str] = []
    monkeypatch.setattr(TOKENIZER, "encode_raw", encoded_texts.append)
    request = make_request(mode=Mode.FIM, prefix="x " * 200_000, is_raw=True)
    admitted = AdmittedRequest(make_principal(), request, pool="demo-fast", variant=NO_VARIANT)

    with pytest.raises(BadRequest, match="prompt_too_long"):
        assemble(writer, admitted)

    assert encoded_texts == []


def test_markers_in_a_file_are_text_even_if_they_are_ordinary_tokens() -> None:
    description = json.loads((WEIGHTS / "tokenizer.json").read_text())
    for token in description["added_tokens"]:
        token["special"] = False
    tokenizer = Tokenizer(HfTokenizer.from_str(json.dumps(description)))

    token_ids = tokenizer.encode("a <|fim_prefix|> b")

    assert tokenizer.get_token_id("<|fim_prefix|>") not in token_ids


@pytest.mark.parametrize(
    ("suffix", "expected"),
    [
        ("\n" * 5_000, ""),
        (")\n\n  \n    foo()  \nbar", "    foo()"),
        ("\nlast", "last"),
        ("", ""),
    ],
)
def test_the_next_line_is_the_first_line_with_text_below_the_cursor(
    suffix: str, expected: str
) -> None:
    request = make_request(suffix=suffix)

    assert build_truncation_context(request, is_single_line=False).next_line == expected


async def test_a_record_after_closing_the_journal_waits_for_the_next_gateway(
    tmp_path: Path,
) -> None:
    journal = FileJournal(tmp_path)
    await journal.close(FakeShipper())

    journal.append(make_record(1))

    assert _num_bytes(tmp_path) > 0


def _num_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.log"))
