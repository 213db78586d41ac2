"""vLLM's pooling runner with the model that retrieval serves by default."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from caret.embedded.embeddings import DEFAULT_EMBEDDINGS_MODEL, embeddings_part, embeddings_settings
from caret.embedded.part import await_ready
from caret.embedded.paths import EmbeddedPaths
from tests.stack.ports import free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.stack.services import Services


@dataclass(frozen=True, slots=True)
class Pooling:
    url: str
    model: str


@pytest.fixture(scope="module")
def pooling(services: Services, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pooling]:
    """The real embedding engine, as `up` starts it."""
    settings = embeddings_settings(served_name=DEFAULT_EMBEDDINGS_MODEL, port=free_ports(1)[0])
    paths = EmbeddedPaths(tmp_path_factory.mktemp("pooling"))
    paths.logs.mkdir()
    part = embeddings_part(settings, paths=paths, environment={**os.environ, **services.mark})
    part.launch()
    try:
        await_ready(part)
        yield Pooling(settings.url, settings.served_name)
    finally:
        part.child.stop()
