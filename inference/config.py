"""The data plane's configuration: frozen, checked once; its composer reads it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from caret.contracts.policy import Mode
from caret.foundation.environment import BadSetting


@dataclass(frozen=True, slots=True)
class DataPlaneConfig:
    root_secret: bytes  # 32 bytes
    region: str  # in which this gateway is, as policies name it
    redis_url: str
    is_behind_relay: bool  # snapshots come to that Redis by a relay, from another region
    pools_file: Path
    dns_resolver: tuple[str, int] | None  # address and port; None: as the machine has it
    kubernetes_url: str  # of its API; "": there is none
    kubernetes_service_account_dir: Path  # token, ca.crt and namespace
    journal_dir: Path
    experiments_file: Path | None  # None: no experiments
    public_code_file: Path | None  # an index of public code; None: nothing is compared
    has_retrieval: bool  # a worker indexes and finds, for tenants whose policy allows it
    allowed_origins: frozenset[str]  # of browsers, e.g. https://caret.example.com
    max_concurrent_completions: int  # under way at once on this gateway
    max_tenant_concurrency_percent: int  # of these, whatever its policy says; 1 to 100
    # Of the first token's 99th percentile, over which a pool sheds.
    first_token_targets_ms: Mapping[Mode, float]
    max_connections_per_key: int  # and HTTP completions, on this gateway
    # Snapshots that nobody could compare with Redis for so long close the gateway: a revocation
    # might have been missed. Long enough for a Redis fail-over.
    max_snapshot_age_s: float
    max_engine_stall_s: float  # without a byte from an engine
    drain_timeout_s: int  # for what is under way when this process is to end
    engine_metrics_interval_s: float  # between two looks at what engines count
    metrics_host: str
    metrics_port: int  # 0: no metrics are served
    metrics_max_tenants: int  # so many have a label of their own in the metrics; 0: none
    has_trace_export: bool  # to the collector that OpenTelemetry's own variables name
    trace_share: float | None  # of completions; None: as OpenTelemetry's own variables have it
    is_client_trace_trusted: bool  # a client's `traceparent` says whether its completion is traced

    def __post_init__(self) -> None:
        for name in (
            "max_concurrent_completions",
            "max_tenant_concurrency_percent",
            "max_connections_per_key",
            "max_snapshot_age_s",
            "max_engine_stall_s",
            "engine_metrics_interval_s",
        ):
            if getattr(self, name) <= 0:
                raise BadSetting(f"{name} must be more than 0.")
