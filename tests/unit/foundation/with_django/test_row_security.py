"""The row-level security constraint as migrations see it, and the months of partitions."""

import pytest
from django.db import models
from django.db.migrations.writer import MigrationWriter

from caret.foundation.postgres.partitions import Month
from caret.foundation.postgres.row_security import APPEND_ONLY, Grants, RowSecurity, grant_sql


def test_a_constraint_survives_serialization_into_a_migration() -> None:
    constraint = RowSecurity(name="x", privileges=APPEND_ONLY, user_column="user_id")

    text, imports = MigrationWriter.serialize(constraint)
    scope: dict[str, object] = {}
    exec("\n".join(imports), scope)  # noqa: S102  # our own migration's text

    assert eval(text, scope) == constraint  # noqa: S307  # our own migration's text


def test_constraints_are_compared_by_value() -> None:
    assert RowSecurity(name="x") == RowSecurity(name="x")
    assert RowSecurity(name="x") != RowSecurity(name="x", privileges=APPEND_ONLY)
    assert RowSecurity(name="x") != Grants(name="x", reason="")
    assert RowSecurity(name="x") != models.UniqueConstraint(fields=["a"], name="x")


def test_the_tenant_policy_raises_without_a_tenant() -> None:
    """`current_setting` raises an error for an unset setting, unless a second argument is true."""
    statements = RowSecurity(name="x").rule_sql('"t"')

    (policy,) = [statement for statement in statements if statement.startswith("CREATE POLICY")]
    assert "current_setting('caret.tenant')" in policy


def test_policies_of_an_earlier_version_of_the_constraint_are_dropped() -> None:
    """A policy that remained would still let the application read rows of other tenants."""
    statements = RowSecurity(name="x").rule_sql('"t"')

    dropped = {f'DROP POLICY IF EXISTS "{policy}" ON "t"' for policy in ("x", "x_own", "x_lookup")}
    assert dropped <= set(statements)


def test_row_security_also_applies_to_the_owner() -> None:
    statements = RowSecurity(name="x").rule_sql('"t"')

    assert 'ALTER TABLE "t" FORCE ROW LEVEL SECURITY' in statements


def test_earlier_grants_are_revoked_before_new_ones() -> None:
    statements = grant_sql('"t"', ("SELECT",))

    assert statements == [
        'REVOKE ALL ON "t" FROM PUBLIC, caret_app',
        'GRANT SELECT ON "t" TO caret_app',
    ]


def test_without_new_grants_earlier_ones_are_only_revoked() -> None:
    assert grant_sql('"t"', ()) == ['REVOKE ALL ON "t" FROM PUBLIC, caret_app']


@pytest.mark.parametrize(
    ("month", "num_months", "expected"),
    [
        (Month(2026, 11), 0, Month(2026, 11)),
        (Month(2026, 11), 2, Month(2027, 1)),
        (Month(2026, 1), -1, Month(2025, 12)),
        (Month(2026, 12), 12, Month(2027, 12)),
    ],
)
def test_adding_months_can_change_the_year(month: Month, num_months: int, expected: Month) -> None:
    assert month.plus_months(num_months) == expected
