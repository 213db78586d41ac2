"""Batches of claimed sinks, to which the worker delivers concurrently."""

from typing import Any

from tenants.compliance.audit_sinks.delivery_worker import _join_into_batches


def test_a_batch_has_at_most_32_runs_and_all_runs_of_each_of_its_tenants() -> None:
    # Each run is the number of its tenant.
    runs_by_tenant: list[list[Any]] = [[1] * 3, [2] * 8, [3] * 8, [4] * 5, [5] * 8, [], [6] * 8]

    batches: list[list[Any]] = list(_join_into_batches(iter(runs_by_tenant)))

    assert [len(batch) for batch in batches] == [32, 8]
    assert [set(batch) for batch in batches] == [{1, 2, 3, 4, 5}, {6}]


def test_a_tenant_whose_runs_might_not_fit_begins_a_new_batch() -> None:
    runs_by_tenant: list[list[Any]] = [[1] * 3, [2] * 8, [3] * 8, [4] * 8, [5] * 8]

    batches: list[list[Any]] = list(_join_into_batches(iter(runs_by_tenant)))

    assert [set(batch) for batch in batches] == [{1, 2, 3, 4}, {5}]
