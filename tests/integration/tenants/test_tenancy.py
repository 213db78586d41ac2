"""Tenant isolation by the database alone: no query has a filter for the current tenant."""

import uuid
from collections.abc import Iterator
from contextvars import copy_context
from threading import Thread
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, ProgrammingError, connection, transaction
from django.utils import timezone

from caret.foundation.ids import UserId
from caret.foundation.postgres.tenant_scope import (
    ScopeConflict,
    current_tenant,
    tenant_scope,
    user_scope,
)
from tenants.models import ApiKey, AuditEntry, Membership, PolicyVersion, UsageRecord
from tests.fixtures.companies import GLOBEX_PEOPLE, Cast, make_company, make_key

# Errors of Postgres if the setting that names the tenant is missing, or is empty after a scope.
NO_SCOPE = r'"caret\.tenant"|invalid input syntax for type uuid: ""'
DENIED = r"permission denied|must be owner of|not supported with row-level security"


@pytest.fixture(scope="module")
def tenants_with_keys(cast: Cast, django_db_blocker: Any) -> Iterator[Cast]:
    """Give each tenant an API key, so that there are rows to see."""
    with django_db_blocker.unblock():
        make_key(cast.acme, cast.acme.developer)
        make_key(cast.globex, cast.globex.developer)
        yield cast


def test_a_query_sees_only_its_tenants_rows(tenants_with_keys: Cast) -> None:
    with tenant_scope(tenants_with_keys.acme.tenant_id):
        tenant_ids = {str(key.tenant_id) for key in ApiKey.objects.all()}

    assert tenant_ids == {tenants_with_keys.acme.tenant_id}


def test_another_tenant_sees_none_of_the_rows(tenants_with_keys: Cast) -> None:
    with tenant_scope(tenants_with_keys.globex.tenant_id):
        num_keys = ApiKey.objects.filter(tenant_id=tenants_with_keys.acme.tenant_id).count()

    assert num_keys == 0


@pytest.mark.parametrize("model", [ApiKey, AuditEntry, PolicyVersion, UsageRecord])
def test_a_query_without_a_tenant_is_an_error(tenants_with_keys: Cast, model: Any) -> None:
    with pytest.raises(DatabaseError, match=NO_SCOPE), transaction.atomic():
        list(model.objects.all()[:1])


def test_the_scope_ends_with_the_transaction(tenants_with_keys: Cast) -> None:
    with tenant_scope(tenants_with_keys.acme.tenant_id):
        assert ApiKey.objects.exists()

    with pytest.raises(DatabaseError, match=NO_SCOPE), transaction.atomic():
        ApiKey.objects.exists()


def test_no_memberships_are_visible_without_a_scope(tenants_with_keys: Cast) -> None:
    """For other tables, such a query is an error. Memberships are also read in a user's scope."""
    assert list(Membership.objects.all()) == []


def test_injected_sql_sees_no_rows_of_another_tenant(tenants_with_keys: Cast) -> None:
    with tenant_scope(tenants_with_keys.globex.tenant_id), connection.cursor() as cursor:
        cursor.execute("SELECT DISTINCT tenant_id FROM tenants_apikey WHERE false OR 1 = 1")
        rows = cursor.fetchall()

    assert rows == [(uuid.UUID(tenants_with_keys.globex.tenant_id),)]


def test_another_tenants_row_cannot_be_updated(tenants_with_keys: Cast) -> None:
    with tenant_scope(tenants_with_keys.globex.tenant_id):
        num_updated = ApiKey.objects.filter(tenant_id=tenants_with_keys.acme.tenant_id).update(
            name="mine"
        )

    assert num_updated == 0


def test_a_row_cannot_be_moved_to_another_tenant(tenants_with_keys: Cast) -> None:
    with (
        pytest.raises(ProgrammingError, match="row-level security"),
        tenant_scope(tenants_with_keys.globex.tenant_id),
    ):
        ApiKey.objects.all().update(tenant_id=tenants_with_keys.acme.tenant_id)


def test_a_row_cannot_be_inserted_for_another_tenant(tenants_with_keys: Cast) -> None:
    with (
        pytest.raises(ProgrammingError, match="row-level security"),
        tenant_scope(tenants_with_keys.globex.tenant_id),
    ):
        PolicyVersion.objects.create(
            tenant_id=tenants_with_keys.acme.tenant_id,
            version=99,
            document={},
            reason="",
            created_at=timezone.now(),
        )


@pytest.mark.parametrize(
    "statement",
    [
        "SET ROLE caret_owner",
        "ALTER TABLE tenants_apikey DISABLE ROW LEVEL SECURITY",
        "TRUNCATE tenants_apikey",
        "TRUNCATE tenants_usage_record",
        "DELETE FROM tenants_ledger_entry",
        "UPDATE tenants_auditentry SET reason = ''",
        "UPDATE tenants_policyversion SET reason = ''",
        # Partitions: the row policy of their table does not apply to a query of the partition.
        "SELECT * FROM tenants_usage_record_default",
        "SELECT * FROM tenants_outcome_default",
        "CREATE TABLE mine (id int)",
        "COPY tenants_apikey FROM STDIN",
    ],
)
def test_privileged_statements_are_denied_to_the_application_role(
    tenants_with_keys: Cast, statement: str
) -> None:
    with pytest.raises(DatabaseError, match=DENIED):
        _execute(tenants_with_keys, statement)


def test_row_security_cannot_be_switched_off(tenants_with_keys: Cast) -> None:
    with pytest.raises(DatabaseError, match="row-level security"):
        _execute(tenants_with_keys, "SET LOCAL row_security = off", "SELECT * FROM tenants_apikey")


@pytest.mark.parametrize("column", ["owner_id", "created_by_id", "issued_by_id"])
def test_a_key_cannot_reference_another_tenants_member(
    tenants_with_keys: Cast, column: str
) -> None:
    gus = tenants_with_keys.globex.developer.user_id
    refusal = pytest.raises(IntegrityError, match=f"{column}_member")

    with refusal, tenant_scope(tenants_with_keys.acme.tenant_id):
        ApiKey.objects.update(**{column: gus})


def test_two_tenants_can_have_keys_with_the_same_lookup_id() -> None:
    first, second = make_company("initech", GLOBEX_PEOPLE), make_company("initrode", GLOBEX_PEOPLE)
    shared_id = make_key(first, first.developer).key.lookup_id
    make_key(second, second.developer)

    with tenant_scope(second.tenant_id):
        num_updated = ApiKey.objects.update(lookup_id=shared_id)

    assert num_updated == 1


def test_a_scope_of_another_tenant_cannot_be_nested(tenants_with_keys: Cast) -> None:
    with (
        tenant_scope(tenants_with_keys.acme.tenant_id),
        pytest.raises(ScopeConflict),
        tenant_scope(tenants_with_keys.globex.tenant_id),
    ):
        pass


def test_a_nested_scope_of_the_same_tenant_keeps_the_outer_one(tenants_with_keys: Cast) -> None:
    with tenant_scope(tenants_with_keys.acme.tenant_id):
        with tenant_scope(tenants_with_keys.acme.tenant_id):
            pass
        is_visible = ApiKey.objects.exists()

    assert is_visible


def test_inside_a_transaction_the_scope_ends_with_its_block(tenants_with_keys: Cast) -> None:
    with transaction.atomic():
        with tenant_scope(tenants_with_keys.acme.tenant_id):
            assert ApiKey.objects.exists()

        with pytest.raises(DatabaseError, match=NO_SCOPE), transaction.atomic():
            ApiKey.objects.exists()


def test_a_failed_nested_scope_keeps_the_outer_one(tenants_with_keys: Cast) -> None:
    with tenant_scope(tenants_with_keys.acme.tenant_id):
        with pytest.raises(ZeroDivisionError), tenant_scope(tenants_with_keys.acme.tenant_id):
            raise ZeroDivisionError
        is_visible = ApiKey.objects.exists()

    assert is_visible
    assert current_tenant() is None


def test_an_on_commit_callback_runs_without_the_scope(tenants_with_keys: Cast) -> None:
    tenants_in_callback = []

    with tenant_scope(tenants_with_keys.acme.tenant_id):
        transaction.on_commit(lambda: tenants_in_callback.append(current_tenant()))

    assert tenants_in_callback == [None]


def test_a_copied_context_sets_the_scope_on_its_own_connection(tenants_with_keys: Cast) -> None:
    """The new thread inherits the scope's context variable, but not its database connection."""
    counts: list[int] = []

    def count() -> None:
        with tenant_scope(tenants_with_keys.acme.tenant_id):
            counts.append(ApiKey.objects.count())
        connection.close()

    with tenant_scope(tenants_with_keys.acme.tenant_id):
        thread = Thread(target=copy_context().run, args=[count])
        thread.start()
        thread.join()

    assert counts[0] > 0


def test_a_user_scope_shows_only_the_users_memberships(tenants_with_keys: Cast) -> None:
    alice = tenants_with_keys.acme.administrator

    with user_scope(alice.user_id):
        user_ids = [str(row.user_id) for row in Membership.objects.all()]

    assert user_ids == [alice.user_id]


def test_a_user_without_memberships_finds_none(tenants_with_keys: Cast) -> None:
    with user_scope(UserId(str(uuid.uuid4()))):
        memberships = list(Membership.objects.all())

    assert memberships == []


def test_a_user_cannot_add_themselves_to_a_tenant(tenants_with_keys: Cast) -> None:
    bob = tenants_with_keys.globex.administrator

    with pytest.raises(ProgrammingError, match="row-level security"), user_scope(bob.user_id):
        Membership.objects.create(
            tenant_id=tenants_with_keys.acme.tenant_id,
            user_id=bob.user_id,
            role="owner",
            created_at=timezone.now(),
        )


def test_a_user_cannot_change_their_own_role(tenants_with_keys: Cast) -> None:
    with user_scope(tenants_with_keys.acme.developer.user_id):
        num_updated = Membership.objects.update(role="owner")

    assert num_updated == 0


def _execute(tenants_with_keys: Cast, *statements: str) -> None:
    with tenant_scope(tenants_with_keys.acme.tenant_id), connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
