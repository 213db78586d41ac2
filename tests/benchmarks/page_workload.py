"""The pages that `tests.benchmarks.pages` requests, and the users who request them."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from django.db import connection
from django.test import Client
from django.test.utils import (
    CaptureQueriesContext,
    setup_test_environment,
    teardown_test_environment,
)
from django.utils import timezone

from caret.foundation.ids import TenantId, UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Role
from tenants.identity.members.operations import insert_membership
from tenants.models import User
from tests.benchmarks.results import Report, median, percentile, rounded, say, spread
from tests.benchmarks.synthetic_usage import NUM_USERS
from tests.browser.pages import all_pages
from tests.browser.sample_data import Scene, Visitor
from tests.fixtures.companies import ACME_PEOPLE, Company, make_company
from tests.integration.console.pages.queries import MAX_QUERIES, table_queries

MAX_MS: Final = 150.0
# The pages whose URL takes a period. "" is the overview.
_PAGES_WITH_PERIOD: Final = ("", "usage", "usage/quality", "usage/requests", "experiments", "cache")


@dataclass(frozen=True, slots=True)
class PageWorkload:
    client: Client
    paths: dict[str, str]  # by the page's name
    tenant_id: TenantId


def make_workload() -> PageWorkload:
    """Make the company and its users. Their usage is inserted later."""
    company = make_company("acme", ACME_PEOPLE)
    say(f"Adding {NUM_USERS} members")
    for number in range(NUM_USERS):
        _add_member(company, number)
    scene = Scene(company)
    # The scene (sample data of the browser tests) signs users in to make some of its objects.
    setup_test_environment()
    try:
        paths = dict(_paths(scene))
        client = Client(headers={"host": "localhost"})
        name, value = scene.session(Visitor.MEMBER) or ("", "")
        client.cookies[name] = value
    finally:
        teardown_test_environment()  # the test environment records rendered templates: costly
    return PageWorkload(client, paths, company.tenant_id)


def measure(report: Report, workload: PageWorkload, *, num_requests: int, only: str) -> None:
    """Request the pages whose name contains `only`, each `num_requests` times."""
    for name, path in workload.paths.items():
        if only in name:
            _measure(report, workload.client, name, path, num_requests)


def _add_member(company: Company, number: int) -> None:
    """Add a member whose user ID contains the number, as in the records of `synthetic_usage`."""
    user_id = UserId(f"00000000-0000-4000-8000-{number:012x}")
    user = User(id=user_id, email=f"{number}@{company.slug}.example", created_at=timezone.now())
    user.set_unusable_password()
    user.save(force_insert=True)
    with tenant_scope(company.tenant_id):
        insert_membership(
            tenant_id=company.tenant_id,
            user_id=user_id,
            role=Role.DEVELOPER,
            now=timezone.now(),
        )


def _paths(scene: Scene) -> Iterator[tuple[str, str]]:
    for page in all_pages():
        if page.visitor is Visitor.MEMBER and page.status == 200:
            yield page.name, page.path_in(scene)
    for pattern in _PAGES_WITH_PERIOD:
        yield f"{pattern.replace('/', '-') or 'overview'}.month", f"/{pattern}?range=30d"


def _measure(report: Report, client: Client, name: str, path: str, num_requests: int) -> None:
    with CaptureQueriesContext(connection) as captured:
        status = client.get(path).status_code
    num_queries = len(table_queries(captured))
    times_ms, cpu_ms = zip(*(_request_ms(client, path) for _ in range(num_requests)), strict=True)
    p95 = percentile(times_ms, 95)
    report.judged(
        f"{name}.p95",
        p95,
        "ms",
        passed=status in (200, 302) and p95 <= MAX_MS and num_queries <= MAX_QUERIES,
        target=f"at most {MAX_MS:g}, {MAX_QUERIES} queries",
        queries=num_queries,
        cpu_ms=rounded(median(cpu_ms)),
        status=status,
        **spread(times_ms),
    )


def _request_ms(client: Client, path: str) -> tuple[float, float]:
    """Return the elapsed time, and the CPU time of this process, which other processes do not
    affect."""
    began_s, worked_s = time.perf_counter(), time.process_time()
    client.get(path)
    took_s, work_s = time.perf_counter() - began_s, time.process_time() - worked_s
    return took_s * 1000, work_s * 1000
