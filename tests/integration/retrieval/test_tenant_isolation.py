"""No tenant finds snippets of another. Stored data is unreadable without its encryption keys."""

import secrets
import time
from typing import Any

import msgspec
import psycopg
import pytest
from django.db import DatabaseError, connection
from structlog.testing import capture_logs

from caret.contracts.retrieval import (
    FILES,
    MAX_AGE_S,
    QUERIES,
    TRIM_AGE_MS,
    FileUpload,
    RetrievalScope,
    SnippetQuery,
    build_results_key,
)
from caret.contracts.sealed_message import FIELD, Envelope
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.redis_connection import connect_to_redis
from tenants.models import RetrievalChunk
from tests.fakes.embeddings import embedding_of
from tests.integration.retrieval.index_harness import SHOP, TenantIndex, add_to_stream, make_code
from tests.stack.services import Services

INVOICE = make_code("invoice", "total")
ADA = RetrievalScope(holder="ada", repository="shop")
ALICE = RetrievalScope(holder="alice", repository="shop")


def test_another_tenant_finds_no_snippets(acme: TenantIndex, globex: TenantIndex) -> None:
    acme.index_file("invoices.py", INVOICE)

    assert globex.find_snippets("invoice total") == []
    assert acme.find_snippets("invoice total") != []


def test_a_query_of_another_repository_finds_nothing(acme: TenantIndex) -> None:
    acme.change_policy(retrieval=["*"])  # allow all repositories, not only "shop"
    acme.index_file("invoices.py", INVOICE)

    assert (
        acme.find_snippets("invoice total", scope=RetrievalScope(holder="", repository="blog"))
        == []
    )


def test_in_strict_isolation_a_colleague_finds_nothing(acme: TenantIndex) -> None:
    acme.change_policy(isolation="strict")
    acme.index_file("invoices.py", INVOICE, scope=ADA)

    assert acme.find_snippets("invoice total", scope=ALICE) == []
    # In strict isolation, there is no index of the whole tenant, so the worker sends no response.
    assert acme.get_responses("invoice total", scope=SHOP) == []
    assert acme.find_snippets("invoice total", scope=ADA) != []


@pytest.mark.parametrize("stream", [FILES, QUERIES])
def test_a_message_forged_for_another_tenant_is_dropped(
    acme: TenantIndex, globex: TenantIndex, stream: str
) -> None:
    acme.index_file("invoices.py", INVOICE)
    gateway = secrets.token_hex(16)
    message: FileUpload | SnippetQuery
    if stream == FILES:
        message = FileUpload(scope=SHOP, path="planted.py", text=INVOICE)
    else:
        message = SnippetQuery(
            query_id="1", gateway=gateway, scope=SHOP, path="a.py", text="invoice total"
        )
    envelope = msgspec.msgpack.decode(globex.seal(message), type=Envelope)
    forged = msgspec.structs.replace(envelope, tenant_id=acme.company.tenant_id)
    add_to_stream(stream, msgspec.msgpack.encode(forged))

    stats = acme.run_worker()

    assert stats.dropped == {"unreadable: seal": 1}
    assert acme.indexed_paths() == {"invoices.py"}
    assert connect_to_redis().llen(build_results_key(gateway)) == 0


def test_an_unreadable_message_is_dropped_and_the_others_processed(acme: TenantIndex) -> None:
    add_to_stream(FILES, b"garbage")
    connect_to_redis().xadd(FILES, {"other": b"x"})

    acme.index_file("invoices.py", INVOICE)

    assert acme.indexed_paths() == {"invoices.py"}


def test_a_row_copied_to_another_tenant_cannot_be_opened(
    acme: TenantIndex, globex: TenantIndex
) -> None:
    acme.index_file("invoices.py", INVOICE)
    globex.index_file("work.py", make_code("invoice", "other"))
    with tenant_scope(acme.company.tenant_id):
        acme_chunk = RetrievalChunk.objects.get()
    with tenant_scope(globex.company.tenant_id):
        # An attacker with write access to one tenant's rows copies sealed text into them.
        RetrievalChunk.objects.update(
            sealed_name=acme_chunk.sealed_name, sealed_text=acme_chunk.sealed_text
        )

    with capture_logs() as logs:
        snippets = globex.find_snippets("invoice total")

    assert snippets == []
    assert "retrieval.seal_broken" in {entry["event"] for entry in logs}


def test_a_row_moved_to_another_user_cannot_be_opened(acme: TenantIndex) -> None:
    acme.change_policy(isolation="strict")
    acme.index_file("invoices.py", INVOICE, scope=ADA)
    acme.index_file("work.py", make_code("invoice", "other"), scope=ALICE)
    with tenant_scope(acme.company.tenant_id):
        digest = RetrievalChunk.objects.get(holder="alice").scope_digest
        RetrievalChunk.objects.filter(holder="ada").update(scope_digest=digest, holder="alice")

    snippets = acme.find_snippets("invoice total", scope=ALICE)

    assert {snippet.path for snippet in snippets} == {"work.py"}


def test_without_a_tenant_the_table_cannot_be_read(acme: TenantIndex) -> None:
    acme.index_file("invoices.py", INVOICE)

    with pytest.raises(DatabaseError):
        RetrievalChunk.objects.count()


def test_a_query_without_a_filter_sees_no_rows_of_another_tenant(
    acme: TenantIndex, globex: TenantIndex
) -> None:
    acme.index_file("invoices.py", INVOICE)
    # `<=>` is the cosine distance.
    nearest_chunks = "SELECT id FROM tenants_retrieval_chunk ORDER BY embedding <=> %s::vector"

    with tenant_scope(globex.company.tenant_id), connection.cursor() as cursor:
        cursor.execute(nearest_chunks, [str(embedding_of("invoice total"))])
        rows = cursor.fetchall()

    assert rows == []


def test_the_table_contains_no_clear_text(acme: TenantIndex, services: Services) -> None:
    planted_words = [f"planted{secrets.token_hex(8)}" for _ in range(3)]
    repository, path, word = planted_words
    acme.change_policy(retrieval=["*"])  # allow all repositories, not only "shop"
    scope = RetrievalScope(holder="", repository=repository)

    acme.index_file(f"{path}.py", make_code(word, "total"), scope=scope)

    columns = _dump_table(services, acme)
    assert acme.indexed_paths() == {f"{path}.py"}
    assert acme.company.tenant_id.encode() in columns
    for planted_word in planted_words:
        assert planted_word.encode() not in columns
        assert planted_word.encode().hex().encode() not in columns


def test_equal_files_of_two_users_are_stored_differently(acme: TenantIndex) -> None:
    acme.change_policy(isolation="strict")
    for scope in (ADA, ALICE):
        acme.index_file("invoices.py", INVOICE, scope=scope)

    with tenant_scope(acme.company.tenant_id):
        ada, alice = RetrievalChunk.objects.order_by("holder")
    for column in ("scope_digest", "file_digest", "chunk_digest", "sealed_text"):
        assert getattr(ada, column) != getattr(alice, column)


def test_redis_contains_no_clear_text_and_messages_expire(acme: TenantIndex) -> None:
    planted_word = f"planted{secrets.token_hex(8)}"
    gateway = secrets.token_hex(16)
    query = SnippetQuery(
        query_id="1",
        gateway=gateway,
        scope=SHOP,
        path=f"{planted_word}.py",
        text=make_code(planted_word),
    )

    acme.send_file(f"{planted_word}.py", make_code(planted_word, "total"))
    add_to_stream(QUERIES, acme.seal(query))
    redis_before = _dump_redis()
    expiries_ms = [connect_to_redis().pttl(name) for name in (FILES, QUERIES)]
    acme.run_worker()
    redis_afterwards = _dump_redis()

    assert acme.company.tenant_id.encode() in redis_before  # in the envelope, in clear text
    assert planted_word.encode() not in redis_before + redis_afterwards
    assert all(0 < expiry_ms <= TRIM_AGE_MS for expiry_ms in expiries_ms)
    assert 0 < connect_to_redis().pttl(build_results_key(gateway)) <= MAX_AGE_S * 1_000
    assert connect_to_redis().xlen(FILES) == connect_to_redis().xlen(QUERIES) == 0


def test_messages_that_no_worker_reads_are_trimmed(acme: TenantIndex) -> None:
    # Stream entry IDs begin with the time in milliseconds. The entry is twice as old as allowed.
    old_id = f"{int(time.time() * 1_000) - 2 * TRIM_AGE_MS}-0"
    connect_to_redis().xadd(FILES, {FIELD: b"old"}, id=old_id)

    acme.send_file("invoices.py", INVOICE)

    entries: Any = connect_to_redis().xrange(FILES)
    assert len(entries) == 1
    assert entries[0][0] != old_id.encode()


def test_logs_contain_neither_text_nor_names(acme: TenantIndex, services: Services) -> None:
    planted_word = f"planted{secrets.token_hex(8)}"
    acme.change_policy(retrieval=["*"])  # allow all repositories, not only "shop"
    scope = RetrievalScope(holder="", repository=planted_word)

    with capture_logs() as logs:
        acme.index_file(f"{planted_word}.py", make_code(planted_word, "total"), scope=scope)
        acme.find_snippets(f"{planted_word} total", scope=scope)
        acme.change_policy(retrieval=[])

    files = b"".join(file.read_bytes() for file in services.paths.logs.glob("*.log"))
    assert {entry["event"] for entry in logs} >= {"retrieval.served", "retrieval.erased"}
    assert planted_word not in str(logs)
    assert planted_word.encode() not in files


def _dump_redis() -> bytes:
    """Return the names and the values of all Redis keys."""
    connect_to_redis().config_set("rdbcompression", "no")  # compressed, a word would not be found
    names: Any = list(connect_to_redis().scan_iter())
    dumps: list[Any] = [connect_to_redis().dump(name) for name in names]
    return b"".join([*names, *(dump or b"" for dump in dumps)])


def _dump_table(services: Services, index: TenantIndex) -> bytes:
    """Return all columns of all rows, joined: bytes as they are, other values as text."""
    with psycopg.connect(services.database_url) as session:
        session.execute("SELECT set_config('caret.tenant', %s, true)", [index.company.tenant_id])
        cursor = session.cursor(binary=True)
        cursor.execute("SELECT * FROM tenants_retrieval_chunk")
        rows = cursor.fetchall()
    assert rows
    return b"|".join(_to_bytes(value) for row in rows for value in row)


def _to_bytes(value: object) -> bytes:
    if isinstance(value, bytes | memoryview):
        return bytes(value)
    return str(value).encode()
