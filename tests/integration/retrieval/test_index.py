"""Files that are sent are indexed and found; sending them again costs little."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from caret.contracts.retrieval import MAX_FILE_CHARS, MAX_SNIPPETS
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.models import RetrievalChunk
from tenants.privacy.retrieval_index import erasure
from tenants.privacy.retrieval_index.embeddings import EmbeddingEngine
from tests.fakes.embeddings import MODEL, FakeEmbeddings
from tests.integration.retrieval.index_harness import Library, code


def test_the_likest_chunk_is_found_first(acme: Library) -> None:
    acme.keep("invoices.py", code("invoice", "total", "tax"))
    acme.keep("sockets.py", code("socket", "read", "frame"))

    found = acme.ask("invoice total = ")

    assert [each.path for each in found][:1] == ["invoices.py"]
    assert found[0].text == code("invoice", "total", "tax").rstrip("\n")
    assert 0.2 <= found[-1].score <= found[0].score <= 1.0


def test_what_is_not_alike_at_all_is_not_found(acme: Library) -> None:
    acme.keep("sockets.py", code("socket", "read", "frame"))

    assert acme.ask("invoice total tax") == []


def test_the_file_that_is_asked_from_is_not_found(acme: Library) -> None:
    acme.keep("invoices.py", code("invoice", "total", "tax"))

    assert acme.ask("invoice total", path="invoices.py") == []


def test_an_answer_has_a_bound(acme: Library) -> None:
    for number in range(MAX_SNIPPETS + 2):
        acme.send(f"invoices{number}.py", code("invoice", "total", "tax"))
    acme.work()

    assert len(acme.ask("invoice total tax")) == MAX_SNIPPETS


def test_only_what_changed_is_embedded_again(acme: Library, embeddings: FakeEmbeddings) -> None:
    file = "\n\n".join(code("work", word) for word in ("one", "two", "three", "four", "five"))
    acme.keep("work.py", file)
    embeddings.texts.clear()

    acme.keep("work.py", file)
    unchanged = list(embeddings.texts)
    acme.keep("work.py", file.replace("work + three", "work - changed"))

    assert unchanged == []
    assert ["changed" in text for text in embeddings.texts] == [True]
    assert any("changed" in each.text for each in acme.ask("work changed three"))


def test_chunks_that_are_gone_from_a_file_are_gone_from_the_index(acme: Library) -> None:
    acme.keep("work.py", code("invoice", "total") * 4 + code("socket", "frame") * 4)
    before = [each for each in acme.ask("socket frame") if "socket" in each.text]

    acme.keep("work.py", code("invoice", "total") * 4)

    assert before != []
    assert acme.ask("socket frame") == []


def test_a_file_that_has_grown_too_long_leaves_the_index(acme: Library) -> None:
    acme.keep("work.py", code("invoice", "total"))
    acme.keep("work.py", code("invoice", "total") + "\n" * MAX_FILE_CHARS)

    assert acme.paths() == set()


def test_vectors_of_another_model_are_made_anew(acme: Library, embeddings: FakeEmbeddings) -> None:
    acme.keep("work.py", code("invoice", "total"))
    with tenant_scope(acme.company.tenant_id):
        before = set(RetrievalChunk.objects.values_list("chunk_digest", flat=True))
    embeddings.model = "words-2"
    newer = EmbeddingEngine(embeddings.url, model="words-2")

    replace(acme, desk=replace(acme.desk, embedder=newer)).keep("work.py", code("invoice", "total"))

    with tenant_scope(acme.company.tenant_id):
        after = set(RetrievalChunk.objects.values_list("chunk_digest", flat=True))
    assert len(before) == len(after) == 1
    assert before != after


def test_what_nobody_used_for_long_is_erased(acme: Library) -> None:
    acme.keep("old.py", code("invoice", "total"))
    acme.keep("used.py", code("socket", "frame"))
    acme.keep("sent.py", code("window", "pane"))
    long_ago = timezone.now() - erasure.KEEP_UNUSED - timedelta(minutes=1)
    with tenant_scope(acme.company.tenant_id):
        RetrievalChunk.objects.update(used_at=long_ago)

    acme.ask("socket frame")
    acme.keep("sent.py", code("window", "pane"))
    erasure.sweep(now=timezone.now())

    assert acme.paths() == {"used.py", "sent.py"}


def test_the_least_used_make_room(acme: Library) -> None:
    for number in range(3):
        acme.keep(f"{number}.py", code("invoice", str(number)))
    with tenant_scope(acme.company.tenant_id):
        rows = RetrievalChunk.objects.filter(tenant_id=acme.company.tenant_id)

        erasure.evict_least_used(rows, keep=2)

    assert acme.paths() == {"1.py", "2.py"}


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (500, None),
        (200, b"<html>"),
        (200, b'{"data": []}'),
        (200, b'{"data": [{"index": 0, "embedding": [1, 2]}]}'),
        (200, b"\xff"),
    ],
)
def test_an_engine_that_fails_delays_and_breaks_nothing(
    acme: Library, embeddings: FakeEmbeddings, status: int, answer: bytes | None
) -> None:
    embeddings.status, embeddings.answer = status, answer
    acme.send("work.py", code("invoice", "total"))

    served = acme.work()
    embeddings.status, embeddings.answer = 200, None
    acme.keep("work.py", code("invoice", "total"))

    assert list(served.dropped.values()) == [1]
    assert served.files == 0
    assert acme.paths() == {"work.py"}


def test_an_engine_that_is_away_delays_and_breaks_nothing(acme: Library) -> None:
    nowhere = EmbeddingEngine("http://127.0.0.1:9", model=MODEL)
    away = replace(acme, desk=replace(acme.desk, embedder=nowhere))
    acme.send("work.py", code("invoice", "total"))

    served = away.work()

    assert served.dropped == {"no embeddings: URLError": 1}
    assert acme.paths() == set()
