"""The data plane's settings, read from the environment once."""

from pathlib import Path
from typing import Final

from caret.contracts.policy import Mode
from caret.foundation.crypto.key_derivation import parse_root_secret
from caret.foundation.environment import (
    env_bool,
    env_int,
    env_list,
    env_secret,
    env_server,
    env_text,
)
from caret.foundation.home_dir import find_home_folder
from inference.config import DataPlaneConfig

# Traces are exported if one of these is set.
_COLLECTOR_SETTINGS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
# The folder in which Kubernetes puts the token of a pod's service account.
KUBERNETES_ACCOUNT_DIR: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
# The share of completions with a trace. A trace has up to ten spans, and a span takes 10 us.
_TRACE_SHARE: Final = 0.1


def read_data_plane_config() -> DataPlaneConfig:
    """Read the configuration from the environment.

    Raises BadSetting.
    """
    home = find_home_folder()
    return DataPlaneConfig(
        root_secret=parse_root_secret(
            env_secret("CARET_ROOT_SECRET", default_file=home / "secrets" / "root")
        ),
        region=env_text("CARET_REGION", "local"),
        redis_url=env_secret("REDIS_URL", default_file=home / "secrets" / "redis-url"),
        is_behind_relay=env_bool("CARET_BEHIND_RELAY", False),
        pools_file=Path(env_text("CARET_POOLS_FILE", str(home / "pools.toml"))),
        dns_resolver=env_server("CARET_DNS_RESOLVER"),
        kubernetes_url=env_text("CARET_KUBERNETES_API", _kubernetes_url()).rstrip("/"),
        kubernetes_service_account_dir=Path(
            env_text("CARET_KUBERNETES_SERVICE_ACCOUNT_DIR", KUBERNETES_ACCOUNT_DIR)
        ),
        journal_dir=Path(env_text("CARET_JOURNAL_DIR", str(home / "journal"))),
        allowed_origins=frozenset(env_list("CARET_ALLOWED_ORIGINS")),
        experiments_file=_optional_path("CARET_EXPERIMENTS_FILE"),
        public_code_file=_optional_path("CARET_PUBLIC_CODE_INDEX"),
        public_code_folder=Path(env_text("CARET_PUBLIC_CODE_FOLDER", str(home / "public-code"))),
        has_retrieval=env_bool("CARET_RETRIEVAL", False),
        max_concurrent_completions=env_int(
            "CARET_MAX_CONCURRENT_COMPLETIONS", 512, low=1, high=100_000
        ),
        max_tenant_concurrency_percent=env_int(
            "CARET_MAX_TENANT_CONCURRENCY_PERCENT", 25, low=1, high=100
        ),
        first_token_targets_ms=_first_token_targets_ms(),
        max_connections_per_key=env_int(
            "CARET_MAX_CONNECTIONS_PER_KEY", 1_000, low=1, high=1_000_000
        ),
        max_snapshot_age_s=env_int("CARET_MAX_SNAPSHOT_AGE_S", 300, low=1, high=86_400),
        max_engine_stall_s=env_int("CARET_MAX_ENGINE_STALL_S", 10, low=1, high=600),
        drain_timeout_s=env_int("CARET_DRAIN_TIMEOUT_S", 3, low=1, high=300),
        engine_metrics_interval_s=env_int("CARET_ENGINE_METRICS_INTERVAL_S", 10, low=1, high=600),
        speculation_fallback_s=env_int("CARET_SPECULATION_FALLBACK_S", 600, low=1, high=86_400),
        speculation_retry_s=env_int("CARET_SPECULATION_RETRY_S", 3_600, low=1, high=86_400),
        metrics_host=env_text("CARET_METRICS_HOST", "127.0.0.1"),
        metrics_port=env_int("CARET_METRICS_PORT", 8403, low=0, high=65_535),
        metrics_max_tenants=env_int("CARET_METRICS_MAX_TENANTS", 0, low=0, high=1_000),
        has_trace_export=any(env_text(name, "") for name in _COLLECTOR_SETTINGS),
        trace_share=None if env_text("OTEL_TRACES_SAMPLER", "") else _TRACE_SHARE,
        is_client_trace_trusted=env_bool("CARET_TRUST_TRACEPARENT", False),
    )


def _kubernetes_url() -> str:
    """Return the API server's URL from the variables that Kubernetes sets in each pod.

    Return "" outside of a pod.
    """
    host, port = env_text("KUBERNETES_SERVICE_HOST", ""), env_text("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        return ""
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def _first_token_targets_ms() -> dict[Mode, float]:
    """Return the targets for load shedding, by mode.

    Except for edits, the defaults are 80% of the promised latencies (latency_targets.py), so that
    shedding begins before a promise is missed.
    """
    inline, fim, block, chat = (
        env_int(f"CARET_FIRST_TOKEN_TARGET_{name}_MS", default, low=1, high=600_000)
        for name, default in (("INLINE", 80), ("FIM", 120), ("BLOCK", 400), ("CHAT", 1_600))
    )
    return {
        Mode.INLINE: inline,
        Mode.FIM: fim,
        Mode.BLOCK: block,
        Mode.DOCSTRING: block,
        Mode.CHAT: chat,
        # The promise for an edit covers its last token. This target covers only the first token.
        Mode.EDIT: block,
    }


def _optional_path(name: str) -> Path | None:
    text = env_text(name, "")
    return Path(text) if text else None
