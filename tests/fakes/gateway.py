"""A whole data plane with fakes at its edges: real stages, no network."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from caret.contracts.api_key import KeyKind, generate_key
from caret.contracts.policy import Tier
from inference.context.prompt.prompt_options import PromptOptions
from inference.context.prompt.prompt_writer import PromptWriter
from inference.context.sources.snippet_source import NullSnippetSource
from inference.context.tokenization.tokenizer import load_tokenizer
from inference.gateway.protocol.late_outcomes import LateOutcomeRecorder
from inference.gateway.protocol.recent_suggestions import RecentSuggestions
from inference.gateway.rate_limits.body_quota import BodyQuota
from inference.gateway.snapshots.snapshot_store import SnapshotStore
from inference.pipeline import DataPlane
from inference.prefix_cache.warmup import WarmupQueue
from inference.recording.record import Recorder
from inference.routing.pool_selection import PoolSelector
from tests.fakes.clock import FakeClock
from tests.fakes.engine import FakeEngine, chunks_of
from tests.fakes.journal import FakeJournal
from tests.fakes.pools import make_admission, make_pool, make_pools, make_router
from tests.fakes.tenants import GLOBEX, ROOT_SECRET, make_credential, make_policy, make_snapshot

WEIGHTS: Final = Path(__file__).parents[2] / "inference" / "demo_model" / "weights"
TOKENIZER: Final = load_tokenizer(str(WEIGHTS))  # shared, since loading it takes 0.15 s
KEY: Final = generate_key(KeyKind.DEVELOPER)
NEIGHBOURS_KEY: Final = generate_key(KeyKind.DEVELOPER)  # of the tenant globex


@dataclass
class FakeGateway:
    engine: FakeEngine = field(default_factory=lambda: FakeEngine(chunks_of("b", "c")))
    clock: FakeClock = field(default_factory=FakeClock)
    journal: FakeJournal = field(default_factory=FakeJournal)

    def __post_init__(self) -> None:
        self.snapshot_store = SnapshotStore(
            root_secret=ROOT_SECRET, clock=self.clock, max_age_s=300
        )
        self.snapshot_store.replace(make_snapshot(make_credential(KEY)))
        self.snapshot_store.replace(
            make_snapshot(make_credential(NEIGHBOURS_KEY), tenant_id=GLOBEX)
        )
        self.snapshot_store.mark_synced()
        writer = PromptWriter(
            TOKENIZER,
            model="demo",
            max_context_tokens=8_192,
            clock=FakeClock(),
            # A fake engine's texts do not repeat the word at the cursor, as token healing expects.
            options=PromptOptions(has_token_healing=False),
        )
        writers = {make_pool(tier=tier).name: writer for tier in Tier}
        self.plane = DataPlane(
            clock=self.clock,
            snapshots=self.snapshot_store,
            admission=make_admission(),
            prompt_writers=writers,
            snippets=NullSnippetSource(),
            pool_selector=PoolSelector(make_pools(), self.snapshot_store.may_use_pool),
            router=make_router(clock=self.clock),
            engine=self.engine,
            recorder=Recorder(journal=self.journal, clock=self.clock),
            suggestions=RecentSuggestions(clock=self.clock, append_record=self.journal.append),
            late_outcomes=LateOutcomeRecorder(clock=self.clock, append_record=self.journal.append),
            warmup_queue=WarmupQueue(self.clock),
            body_quota=BodyQuota(),
        )

    @property
    def key_text(self) -> str:
        return KEY.text

    def exclude(self, globs: dict[str, tuple[str, ...]], *, requires_path: bool = False) -> None:
        """Set the content exclusion of the tenant that owns the key."""
        policy = make_policy(content_exclusion=globs, requires_path=requires_path)
        # The store ignores a snapshot that is not newer than the tenant's last one.
        version = max(self.snapshot_store.versions.values()) + 1
        self.snapshot_store.replace(
            make_snapshot(make_credential(KEY), policy=policy, version=version)
        )
