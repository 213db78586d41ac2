"""The owner role creates monthly partitions of usage tables. The application uses only the parent
table."""

import secrets
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from io import StringIO

import psycopg
import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import DatabaseError, connection, connections, transaction
from django.db.backends.utils import CursorWrapper
from django.db.migrations.state import ProjectState
from django.db.models import Index

from caret.contracts.snapshot import TenantStatus
from caret.foundation.ids import TenantId
from caret.foundation.postgres import OWNER_ALIAS
from caret.foundation.postgres.partitioned_index import AddPartitionedIndex
from caret.foundation.postgres.partitions import Month, ensure_month
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.models import Outcome, Tenant
from tests.stack.services import Services

TABLE = "tenants_outcome"
LONG_AGO = datetime(1999, 3, 14, tzinfo=UTC)
MARCH = Month(1999, 3)


@pytest.fixture
def tenant_id() -> TenantId:
    row = Tenant.objects.create(
        slug=f"old-{secrets.token_hex(4)}",
        name="Old",
        status=TenantStatus.ACTIVE,
        created_at=LONG_AGO,
    )
    return TenantId(str(row.id))


@pytest.fixture(autouse=True)
def _drop_march_partition(services: Services) -> Iterator[None]:
    yield
    with psycopg.connect(services.owner_database_url) as owner:
        owner.execute("DROP TABLE IF EXISTS tenants_outcome_1999_03")


def add_outcome(tenant_id: TenantId) -> None:
    with tenant_scope(tenant_id):
        Outcome.objects.create(
            tenant_id=tenant_id,
            occurred_at=LONG_AGO,
            outcome_id=uuid.uuid4(),
            request_id=uuid.uuid4(),
            event="shown",
            chars=1,
            after_ms=0,
        )


def test_a_partition_is_created_once() -> None:
    creations = [ensure_month(connections[OWNER_ALIAS], TABLE, MARCH) for _ in range(2)]

    assert creations == [True, False]


def test_rows_inserted_before_their_partition_exists_are_moved_into_it(
    services: Services, tenant_id: TenantId
) -> None:
    add_outcome(tenant_id)

    ensure_month(connections[OWNER_ALIAS], TABLE, MARCH)

    with psycopg.connect(services.owner_database_url) as owner:
        rows = owner.execute("SELECT tenant_id FROM tenants_outcome_1999_03").fetchall()
    assert (uuid.UUID(tenant_id),) in rows
    with tenant_scope(tenant_id):
        assert Outcome.objects.count() == 1


def test_a_partition_can_be_read_only_through_its_parent(tenant_id: TenantId) -> None:
    ensure_month(connections[OWNER_ALIAS], TABLE, MARCH)

    with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
        connection.cursor().execute("SELECT * FROM tenants_outcome_1999_03")


def test_a_partition_granted_by_mistake_shows_no_rows(
    services: Services, tenant_id: TenantId
) -> None:
    add_outcome(tenant_id)
    ensure_month(connections[OWNER_ALIAS], TABLE, MARCH)
    with psycopg.connect(services.owner_database_url) as owner:
        owner.execute("GRANT SELECT ON tenants_outcome_1999_03 TO caret_app")

    with tenant_scope(tenant_id), connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM tenants_outcome_1999_03")
        count = cursor.fetchone()

    assert count == (0,)


def test_another_tenant_sees_no_rows_of_a_partition(tenant_id: TenantId) -> None:
    add_outcome(tenant_id)
    ensure_month(connections[OWNER_ALIAS], TABLE, MARCH)

    with tenant_scope(TenantId(str(uuid.uuid4()))):
        assert Outcome.objects.count() == 0


def test_a_second_run_of_the_command_creates_no_partitions() -> None:
    """The command prints a line for each partition that it creates."""
    output = StringIO()

    call_command("create_partitions", months=2, stdout=StringIO())  # a month may end meanwhile
    call_command("create_partitions", months=1, stdout=output)

    assert output.getvalue() == ""


def test_a_repeated_insert_finds_the_row_in_its_partition(tenant_id: TenantId) -> None:
    ensure_month(connections[OWNER_ALIAS], TABLE, MARCH)
    row = Outcome(
        tenant_id=uuid.UUID(tenant_id),
        occurred_at=LONG_AGO,
        outcome_id=uuid.uuid4(),
        request_id=uuid.uuid4(),
        event="shown",
        chars=1,
        after_ms=0,
    )

    for _ in range(2):
        with tenant_scope(tenant_id):
            Outcome.objects.bulk_create([row], ignore_conflicts=True)

    with tenant_scope(tenant_id):
        assert Outcome.objects.count() == 1


def test_an_interrupted_index_build_continues_with_the_next_partition() -> None:
    index = Index(fields=["event"], name="outcome_event_tried")
    operation = AddPartitionedIndex(model_name="outcome", index=index)
    ensure_month(connections[OWNER_ALIAS], TABLE, MARCH)
    state = ProjectState.from_apps(apps)
    owner = connections[OWNER_ALIAS]
    try:
        with owner.cursor() as cursor:
            # This is the state after a build that stopped at the first partition: the parent
            # table has the index, and no partition has one.
            cursor.execute(f"CREATE INDEX outcome_event_tried ON ONLY {TABLE} (event)")
            assert not _is_valid(cursor)
        # Postgres gives this partition an index when it creates the partition.
        ensure_month(owner, TABLE, MARCH.plus_months(2))
        for _ in range(2):
            with owner.schema_editor(atomic=False) as editor:
                operation.database_forwards("tenants", editor, state, state)

        with owner.cursor() as cursor:
            assert _is_valid(cursor)
            ensure_month(owner, TABLE, MARCH.plus_months(1))
            assert _is_valid(cursor)
    finally:
        with owner.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS tenants_outcome_1999_04, tenants_outcome_1999_05")
            cursor.execute("DROP INDEX outcome_event_tried")


def _is_valid(cursor: CursorWrapper) -> bool:
    cursor.execute(
        "SELECT indisvalid FROM pg_index WHERE indexrelid = 'outcome_event_tried'::regclass"
    )
    (is_valid,) = cursor.fetchone()
    return bool(is_valid)
