"""Row-level security of each table, read from Postgres.

A table without row security is found even if no model or migration names it.
"""

from typing import Any

import pytest
from django.db import connection

from caret.foundation.postgres import APP_ROLE, OWNER_ROLE

# Tables without a tenant column, and so without row security, each with the reason. "Not granted":
# the application's role has no privileges on the table. "Read and never written": it has SELECT.
EXCEPTIONS = {
    "tenants_tenant": "the directory, read before a tenant is chosen; no customer content",
    "tenants_verified_domain": "maps an email address to the tenant to sign in to",
    "account_emailaddress": "django-allauth's, read and never written",
    "account_emailconfirmation": "django-allauth's, not granted",
    "mfa_authenticator": "second factors, read before a tenant is chosen; encrypted",
    "socialaccount_socialaccount": "django-allauth's, read and never written",
    "socialaccount_socialapp": "django-allauth's, not granted",
    "socialaccount_socialtoken": "django-allauth's, not granted",
    "usersessions_usersession": "signed-in users and their addresses, read without a tenant",
    "tenants_operator": "operators, who belong to no tenant",
    "tenants_operatorkey": "keys of operators' scripts, which belong to no tenant",
    "tenants_user": "users, read at sign-in before a tenant is chosen",
    "tenants_plan": "the platform's price list, which belongs to no tenant",
    "tenants_price_version": "the platform's price list, which belongs to no tenant",
    "tenants_capability_change": "the features of the installation, which belong to no tenant",
    "tenants_catalog_model": "the platform's list of models, which belongs to no tenant",
    "tenants_evaluation": "scores of the installation's pools, which belong to no tenant",
    "tenants_pool_assignment": "pools dedicated to tenants; operators read it for all tenants",
    "keyring_root_key": "the root keys in use, read when a process starts",
    "django_session": "sessions, read before a tenant is chosen",
    "django_migrations": "Django's own",
    "django_content_type": "Django's own, not granted",
    "django_admin_log": "Django's own, not granted",
    "auth_permission": "Django's own, not granted",
    "auth_group": "Django's own, not granted",
    "auth_group_permissions": "Django's own, not granted",
}


@pytest.fixture(autouse=True)
def _database(database: None) -> None:
    """Give all of these tests the database."""


@pytest.fixture
def tables() -> dict[str, dict[str, Any]]:
    """Return the properties of every table by its name.

    `parent` is the partitioned table of a partition, and None for other tables.
    """
    rows = _select(
        """
        SELECT c.relname, c.relrowsecurity, c.relforcerowsecurity, parent.relname,
               EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid
                       AND a.attname = 'tenant_id' AND NOT a.attisdropped),
               (SELECT count(*) FROM pg_policy p WHERE p.polrelid = c.oid),
               pg_get_userbyid(c.relowner)
        FROM pg_class c
        LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
        LEFT JOIN pg_class parent ON parent.oid = i.inhparent
        WHERE c.relkind IN ('r', 'p')  -- tables and partitioned tables
            AND c.relnamespace = 'public'::regnamespace
        """
    )
    names = ("secured", "forced", "parent", "has_tenant", "policies", "owner")
    return {name: dict(zip(names, row, strict=True)) for name, *row in rows}


def test_every_table_with_a_tenant_has_row_security(tables: dict[str, dict[str, Any]]) -> None:
    open_tables = [
        name
        for name, table in tables.items()
        if table["has_tenant"]
        and table["parent"] is None
        and not (table["secured"] and table["forced"] and table["policies"])
    ]

    assert open_tables == []


def test_tables_without_a_tenant_are_listed_with_a_reason(
    tables: dict[str, dict[str, Any]],
) -> None:
    without_tenant = {name for name, table in tables.items() if not table["has_tenant"]}

    assert without_tenant == set(EXCEPTIONS)


def test_tables_listed_as_not_granted_or_as_only_read_are_so() -> None:
    privileges = _privileges()

    for table, reason in EXCEPTIONS.items():
        if reason.endswith("not granted"):
            assert privileges[table] == set(), table
        if reason.endswith("read and never written"):
            assert privileges[table] == {"SELECT"}, table


def test_partitions_are_accessible_only_through_their_parent(
    tables: dict[str, dict[str, Any]],
) -> None:
    partitions = {name for name, table in tables.items() if table["parent"] is not None}
    granted = {name for name, privileges in _privileges().items() if privileges} & partitions
    open_partitions = {name for name in partitions if not tables[name]["secured"]}

    assert len(partitions) >= 2
    assert granted == set()
    assert open_partitions == set()


def test_the_application_role_owns_no_tables(tables: dict[str, dict[str, Any]]) -> None:
    owners = {table["owner"] for table in tables.values()}

    assert owners == {OWNER_ROLE}


def test_policies_apply_to_the_application_role_for_reads_and_writes() -> None:
    policies = _select(
        "SELECT tablename, policyname, roles::text, qual, with_check, cmd FROM pg_policies"
        " WHERE permissive = 'PERMISSIVE'"
    )

    assert policies
    for table, _, roles, read_condition, write_condition, command in policies:
        assert roles == f"{{{APP_ROLE}}}", table  # an array of one role
        # The condition compares with the scope's tenant, user or lookup ID, for example
        # current_setting('caret.tenant').
        assert "current_setting('caret." in read_condition, table
        assert command == "SELECT" or write_condition == read_condition, table


def test_append_only_rows_may_be_deleted_after_their_retention() -> None:
    policies = _select(
        "SELECT tablename, cmd, roles::text, qual FROM pg_policies"
        " WHERE permissive = 'RESTRICTIVE' AND qual LIKE '% days%' ORDER BY tablename"
    )

    # The condition contains the minimum age in quotes: occurred_at < (now() - '62 days'::interval).
    assert {table: condition.split("'")[1] for table, _, _, condition in policies} == {
        "tenants_auditentry": "366 days",
        "tenants_outcome": "62 days",
        "tenants_typing_report": "62 days",
        "tenants_usage_record": "62 days",
    }
    assert {(command, roles) for _, command, roles, _ in policies} == {
        ("DELETE", f"{{{APP_ROLE}}}")
    }


def test_append_only_rows_may_be_deleted_with_their_tenant_and_anonymized() -> None:
    policies = _select(
        "SELECT tablename, cmd, roles::text, coalesce(with_check, qual) FROM pg_policies"
        " WHERE permissive = 'RESTRICTIVE' AND qual NOT LIKE '% days%' ORDER BY tablename"
    )
    # Columns that the application may update, in tables that it may not update as a whole.
    columns = _select(
        "SELECT table_name, column_name FROM information_schema.column_privileges p"
        " WHERE privilege_type = 'UPDATE' AND grantee = current_user AND NOT EXISTS ("
        "SELECT FROM information_schema.table_privileges t WHERE t.table_name = p.table_name"
        " AND t.privilege_type = 'UPDATE' AND t.grantee = p.grantee) ORDER BY table_name"
    )

    anonymized = ["tenants_outcome", "tenants_typing_report", "tenants_usage_record"]
    assert [(table, cmd) for table, cmd, _, _ in policies] == [
        ("tenants_outcome", "UPDATE"),
        ("tenants_policy_override_version", "DELETE"),
        ("tenants_policyversion", "DELETE"),
        ("tenants_typing_report", "UPDATE"),
        ("tenants_usage_record", "UPDATE"),
    ]
    for _, cmd, roles, condition in policies:
        assert roles == f"{{{APP_ROLE}}}"
        # Rows may be deleted if the tenant's erasure was requested. A user ID may be replaced only
        # by an ID that belongs to no user.
        assert ("tenants_erasure" if cmd == "DELETE" else "NOT (EXISTS") in condition
    assert columns == [(table, "user_id") for table in anonymized]


def test_unique_keys_of_tenant_tables_begin_with_the_tenant() -> None:
    unique_keys = _select(
        """
        SELECT c.relname, i.relname, (
            SELECT a.attname FROM pg_attribute a  -- the first column
            WHERE a.attrelid = c.oid AND a.attnum = x.indkey[0])
        FROM pg_index x
        JOIN pg_class c ON c.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid
        WHERE x.indisunique AND c.relnamespace = 'public'::regnamespace AND EXISTS (
            SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id')
        """
    )

    faults = [
        (table, name) for table, name, first_column in unique_keys if first_column != "tenant_id"
    ]
    assert faults == []
    assert len(unique_keys) >= 6  # the query finds the keys


def test_foreign_keys_between_tenant_tables_include_the_tenant() -> None:
    foreign_keys = _select(
        """
        SELECT k.conname FROM pg_constraint k
        JOIN pg_class target ON target.oid = k.confrelid
        WHERE k.contype = 'f' AND EXISTS (
            SELECT FROM pg_attribute a WHERE a.attrelid = target.oid AND a.attname = 'tenant_id')
        AND NOT EXISTS (
            SELECT FROM pg_attribute a WHERE a.attrelid = k.conrelid
            AND a.attnum = ANY(k.conkey) AND a.attname = 'tenant_id')
        """
    )

    assert foreign_keys == []


def test_only_the_owner_may_truncate() -> None:
    privileges = _privileges()

    assert [name for name, granted in privileges.items() if "TRUNCATE" in granted] == []


def test_audit_log_policies_usage_and_ledger_are_append_only() -> None:
    privileges = _privileges()

    ledger = ("ledger_account", "ledger_transaction", "ledger_entry", "plan", "price_version")
    proofs = ("signedaudithead", "consent_receipt", "retentionrule", "deletioncertificate")
    for table in (*proofs, *ledger):
        assert privileges[f"tenants_{table}"] == {"SELECT", "INSERT"}
    # Rows of these tables may be deleted after their retention or with their tenant, as the tests
    # above check.
    for table in (
        "policyversion",
        "policy_override_version",
        "auditentry",
        "usage_record",
        "outcome",
        "typing_report",
    ):
        assert privileges[f"tenants_{table}"] == {"SELECT", "INSERT", "DELETE"}


def test_there_are_no_views_and_no_security_definer_functions() -> None:
    views = _select(
        "SELECT relname FROM pg_class WHERE relkind IN ('v', 'm')"
        " AND relnamespace = 'public'::regnamespace"
    )
    functions = _select(
        "SELECT proname FROM pg_proc WHERE prosecdef AND pronamespace = 'public'::regnamespace"
    )

    assert views == []
    assert functions == []


def _privileges() -> dict[str, set[str]]:
    """Return the privileges of the application role and of PUBLIC (grantee 0) by table."""
    rows = _select(
        """
        SELECT c.relname, (
            SELECT coalesce(array_agg(DISTINCT acl.privilege_type), '{}')
            FROM aclexplode(c.relacl) acl
            WHERE acl.grantee = 0 OR acl.grantee = %s::regrole)
        FROM pg_class c
        WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace
        """,
        [APP_ROLE],
    )
    return {name: set(privileges) for name, privileges in rows}


def _select(query: str, parameters: list[str] | None = None) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query, parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows
