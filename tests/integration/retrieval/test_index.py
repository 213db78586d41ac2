"""Files that a gateway sends are indexed and found. Only changed parts are embedded again."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from caret.contracts.retrieval import MAX_FILE_CHARS, MAX_SNIPPETS
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.models import RetrievalChunk
from tenants.models.retrieval_chunk import EMBEDDING_DIMENSIONS
from tenants.policy.data_classes import DataClass
from tenants.privacy.retention.operations import set_rule
from tenants.privacy.retrieval_index import erasure
from tenants.privacy.retrieval_index.embeddings import EmbeddingEngine
from tenants.privacy.retrieval_index.queries import MIN_SCORE
from tests.fakes.embeddings import MODEL, FakeEmbeddings
from tests.integration.retrieval.index_harness import TenantIndex, make_code


def test_the_most_similar_chunk_is_found_first(acme: TenantIndex) -> None:
    acme.index_file("invoices.py", make_code("invoice", "total", "tax"))
    acme.index_file("sockets.py", make_code("socket", "read", "frame"))

    snippets = acme.find_snippets("invoice total = ")

    assert [snippet.path for snippet in snippets][:1] == ["invoices.py"]
    assert snippets[0].text == make_code("invoice", "total", "tax").rstrip("\n")
    assert MIN_SCORE <= snippets[-1].score <= snippets[0].score <= 1.0


def test_dissimilar_chunks_are_not_found(acme: TenantIndex) -> None:
    acme.index_file("sockets.py", make_code("socket", "read", "frame"))

    assert acme.find_snippets("invoice total tax") == []


def test_chunks_of_the_querying_file_are_not_found(acme: TenantIndex) -> None:
    acme.index_file("invoices.py", make_code("invoice", "total", "tax"))

    assert acme.find_snippets("invoice total", path="invoices.py") == []


def test_the_number_of_results_is_limited(acme: TenantIndex) -> None:
    for number in range(MAX_SNIPPETS + 2):
        acme.send_file(f"invoices{number}.py", make_code("invoice", "total", "tax"))
    acme.run_worker()

    assert len(acme.find_snippets("invoice total tax")) == MAX_SNIPPETS


def test_only_changed_chunks_are_embedded_again(
    acme: TenantIndex, embeddings: FakeEmbeddings
) -> None:
    file = "\n\n".join(make_code("work", word) for word in ("one", "two", "three", "four", "five"))
    acme.index_file("work.py", file)
    embeddings.texts.clear()

    acme.index_file("work.py", file)
    unchanged = list(embeddings.texts)
    acme.index_file("work.py", file.replace("work + three", "work - changed"))

    assert unchanged == []
    (embedded_text,) = embeddings.texts
    assert "changed" in embedded_text
    assert any("changed" in snippet.text for snippet in acme.find_snippets("work changed three"))


def test_a_chunk_that_is_deleted_while_the_file_is_embedded_is_embedded_again(
    acme: TenantIndex, embeddings: FakeEmbeddings
) -> None:
    stable, old, new = (make_code("work", word) for word in ("stable", "old", "new"))
    acme.index_file("work.py", f"{stable}\n\n{old}")

    class EngineDuringDeletion(EmbeddingEngine):
        """Another worker deletes the stored chunks before each response."""

        def embed(self, texts: Sequence[str]) -> list[list[float]]:
            with tenant_scope(acme.company.tenant_id):
                RetrievalChunk.objects.all().delete()
            return super().embed(texts)

    engine = EngineDuringDeletion(embeddings.url, model=MODEL)
    replace(acme, context=replace(acme.context, embedder=engine)).index_file(
        "work.py", f"{stable}\n\n{new}"
    )

    text = " ".join(snippet.text for snippet in acme.find_snippets("work stable new"))
    assert ("work_stable" in text, "work_new" in text, "work_old" in text) == (True, True, False)


def test_chunks_removed_from_a_file_are_removed_from_the_index(acme: TenantIndex) -> None:
    acme.index_file("work.py", make_code("invoice", "total") * 4 + make_code("socket", "frame") * 4)
    before = [snippet for snippet in acme.find_snippets("socket frame") if "socket" in snippet.text]

    acme.index_file("work.py", make_code("invoice", "total") * 4)

    assert before != []
    assert acme.find_snippets("socket frame") == []


def test_a_file_that_became_too_long_is_removed_from_the_index(acme: TenantIndex) -> None:
    acme.index_file("work.py", make_code("invoice", "total"))
    paths_before = acme.indexed_paths()

    acme.index_file("work.py", make_code("invoice", "total") + "\n" * MAX_FILE_CHARS)

    assert paths_before == {"work.py"}
    assert acme.indexed_paths() == set()


def test_a_change_of_model_replaces_the_embeddings(
    acme: TenantIndex, embeddings: FakeEmbeddings
) -> None:
    acme.index_file("work.py", make_code("invoice", "total"))
    with tenant_scope(acme.company.tenant_id):
        before = set(RetrievalChunk.objects.values_list("chunk_digest", flat=True))
    embeddings.model = "words-2"
    new_engine = EmbeddingEngine(embeddings.url, model="words-2")

    replace(acme, context=replace(acme.context, embedder=new_engine)).index_file(
        "work.py", make_code("invoice", "total")
    )

    with tenant_scope(acme.company.tenant_id):
        after = set(RetrievalChunk.objects.values_list("chunk_digest", flat=True))
    assert len(before) == len(after) == 1
    assert before != after


def test_files_that_are_unused_for_long_are_erased(acme: TenantIndex) -> None:
    acme.index_file("old.py", make_code("invoice", "total"))
    acme.index_file("used.py", make_code("socket", "frame"))
    acme.index_file("sent.py", make_code("window", "pane"))
    long_ago = timezone.now() - erasure.KEEP_UNUSED - timedelta(minutes=1)
    with tenant_scope(acme.company.tenant_id):
        RetrievalChunk.objects.update(used_at=long_ago)

    acme.find_snippets("socket frame")
    acme.index_file("sent.py", make_code("window", "pane"))
    erasure.clean_up_index(now=timezone.now())

    assert acme.indexed_paths() == {"used.py", "sent.py"}


def test_a_longer_retention_rule_keeps_unused_files_longer(acme: TenantIndex) -> None:
    now = timezone.now()
    set_rule(
        actor=acme.company.platform,
        data_class=DataClass.RETRIEVAL,
        days=60,
        reason="a test",
        now=now,
    )
    acme.index_file("old.py", make_code("invoice", "total"))
    with tenant_scope(acme.company.tenant_id):
        RetrievalChunk.objects.update(used_at=now - timedelta(days=59))
    acme.index_file("sent.py", make_code("window", "pane"))

    erasure.clean_up_index(now=now)
    paths_after_59_days = acme.indexed_paths()
    erasure.clean_up_index(now=now + timedelta(days=2))

    assert paths_after_59_days == {"old.py", "sent.py"}
    assert acme.indexed_paths() == {"sent.py"}


def test_the_least_recently_used_files_are_evicted(acme: TenantIndex) -> None:
    for number in range(3):
        acme.index_file(f"{number}.py", make_code("invoice", str(number)))
    with tenant_scope(acme.company.tenant_id):
        rows = RetrievalChunk.objects.filter(tenant_id=acme.company.tenant_id)

        erasure.evict_least_recently_used(rows, keep=2)

    assert acme.indexed_paths() == {"1.py", "2.py"}


def _vector_response(*, index: int, number: float) -> bytes:
    """Return a response with one vector, whose numbers are all `number`."""
    vector = [number] * EMBEDDING_DIMENSIONS
    return json.dumps({"data": [{"index": index, "embedding": vector}]}).encode()


@pytest.mark.parametrize(
    ("status", "raw_response"),
    [
        (500, None),
        (200, b"<html>"),
        (200, b'{"data": []}'),
        (200, b'{"data": [{"index": 0, "embedding": [1, 2]}]}'),
        (200, _vector_response(index=0, number=0.0)),  # without a direction
        (200, _vector_response(index=1, number=1.0)),  # index 1 is not that of the only text
        (200, b"\xff"),
    ],
)
def test_an_invalid_engine_response_drops_the_file_until_it_is_sent_again(
    acme: TenantIndex, embeddings: FakeEmbeddings, status: int, raw_response: bytes | None
) -> None:
    embeddings.status, embeddings.raw_response = status, raw_response
    acme.send_file("work.py", make_code("invoice", "total"))

    stats = acme.run_worker()
    embeddings.status, embeddings.raw_response = 200, None
    acme.index_file("work.py", make_code("invoice", "total"))

    assert list(stats.dropped.values()) == [1]
    assert stats.files == 0
    assert acme.indexed_paths() == {"work.py"}


def test_an_unreachable_engine_drops_the_file(acme: TenantIndex) -> None:
    unreachable_engine = EmbeddingEngine("http://127.0.0.1:9", model=MODEL)  # nothing listens
    index_without_engine = replace(acme, context=replace(acme.context, embedder=unreachable_engine))
    acme.send_file("work.py", make_code("invoice", "total"))

    stats = index_without_engine.run_worker()

    assert stats.dropped == {"no embeddings: URLError": 1}
    assert acme.indexed_paths() == set()
