"""An installation with retrieval, as `up` starts it.

It has its own embedding engine, databases, gateway, worker and console. It shares the completion
engine with the other tests of the session.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from caret.local.engines.embedding_engine import DEFAULT_EMBEDDINGS_MODEL
from caret.local.engines.engine import DEMO_MODEL, MAX_CONTEXT_TOKENS
from caret.local.engines.pools_file import render_pools
from caret.local.ports import LOOPBACK
from tests.stack.ports import free_ports

if TYPE_CHECKING:
    from tests.functional.conftest import Installation
    from tests.stack.running import Engine


@dataclass(frozen=True, slots=True)
class EmbeddingServer:
    """The address of the embedding engine, and the name of its model."""

    url: str
    model: str


@pytest.fixture(scope="module")
def installation(new_installation: Installation, engine: Engine) -> Installation:
    """Start an installation with retrieval."""
    pools_file = new_installation.paths.home.parent / "pools.toml"
    pools_file.write_text(
        render_pools(
            model="demo",
            tokenizer=str(DEMO_MODEL),
            max_context_tokens=MAX_CONTEXT_TOKENS,
            replicas=[engine.url],
        )
    )
    new_installation.environment.update(
        CARET_POOLS_FILE=os.fspath(pools_file),
        CARET_RETRIEVAL="True",
        CARET_EMBEDDINGS_PORT=str(free_ports(1)[0]),
    )
    process = new_installation.manage("up", "--detach")
    assert process.returncode == 0, process.stdout + process.stderr
    return new_installation


@pytest.fixture(scope="module")
def embedding_server(installation: Installation) -> EmbeddingServer:
    """Return the installation's embedding engine, with the default model."""
    port = installation.environment["CARET_EMBEDDINGS_PORT"]
    return EmbeddingServer(f"http://{LOOPBACK}:{port}", DEFAULT_EMBEDDINGS_MODEL)
