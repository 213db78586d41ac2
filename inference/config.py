"""The configuration of the data plane: frozen, and validated once."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from caret.contracts.policy import Mode
from caret.foundation.environment import BadSetting


@dataclass(frozen=True, slots=True)
class DataPlaneConfig:
    root_secret: bytes  # 32 bytes, from which other secrets are derived
    region: str  # of this gateway, as policies name it
    redis_url: str
    is_behind_relay: bool  # a relay copies snapshots to this Redis from another region
    pools_file: Path
    dns_resolver: tuple[str, int] | None  # address and port; None: the system's resolver
    kubernetes_url: str  # of the Kubernetes API; "": none
    kubernetes_service_account_dir: Path  # folder with token, ca.crt and namespace
    journal_dir: Path  # of the usage journal
    experiments_file: Path | None  # None: no experiments
    # The index of public code that is used unless operators activate another one; None: no index.
    public_code_file: Path | None
    public_code_folder: Path  # with the indexes that operators can activate
    has_retrieval: bool  # a worker indexes files, for tenants whose policy allows it
    allowed_origins: frozenset[str]  # of browsers' pages, such as https://caret.example.com
    max_concurrent_completions: int  # in flight on this gateway
    # The share of `max_concurrent_completions` that one tenant can use. A policy cannot raise it.
    max_tenant_concurrency_percent: int  # 1 to 100
    # Time to the engine's first token above which a pool sheds requests, in milliseconds.
    first_token_targets_ms: Mapping[Mode, float]
    max_connections_per_key: int  # on this gateway; a completion over HTTP counts as a connection
    # If the gateway could not compare its snapshots with Redis for this long, it rejects all
    # requests, because it may have missed a revocation. Long enough for a Redis failover.
    max_snapshot_age_s: float
    max_engine_stall_s: float  # after this time without data, an engine's stream is ended
    drain_timeout_s: int  # for completions in flight at shutdown
    engine_metrics_interval_s: float  # between two reads of engines' counters
    # How long the acceptance rate of speculative tokens must be low in a language before its
    # requests go to replicas without speculation.
    speculation_fallback_s: float
    speculation_retry_s: float  # after which speculation is tried again for such a language
    metrics_host: str
    metrics_port: int  # 0: no metrics are served
    metrics_max_tenants: int  # number of tenants that have their own metric label; 0: none
    has_trace_export: bool  # to the collector that OpenTelemetry's environment variables name
    # Share of completions that are traced; None: OpenTelemetry's environment variables decide.
    trace_share: float | None
    # Whether a client's `traceparent` decides if its completion is traced.
    is_client_trace_trusted: bool

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
