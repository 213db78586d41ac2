"""Lists of requests: if filters narrow a list to a few users, the read of each page is audited."""

import uuid
from collections.abc import Iterable
from datetime import timedelta

import pytest

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.models import AuditEntry
from tenants.usage.reports.filters import ReportFilter
from tenants.usage.requests.list_queries import RequestFilter, RequestPage, list_requests
from tests.fixtures.companies import ACME_PEOPLE, Company, make_company
from tests.integration.tenants.records import NOON, add_completion

PYTHON = RequestFilter(
    NOON - timedelta(hours=1), NOON + timedelta(hours=1), ReportFilter(language="python")
)


@pytest.fixture
def company() -> Company:
    return make_company("initech", ACME_PEOPLE)


def add_requests_of(company: Company, user_ids: Iterable[str]) -> None:
    """Add one request for each user, newest first."""
    for number, user_id in enumerate(user_ids):
        add_completion(company, user_id=user_id, at=NOON - timedelta(seconds=number))


def list_all_pages(company: Company, *, limit: int) -> list[RequestPage]:
    pages: list[RequestPage] = []
    while not pages or pages[-1].page.next_cursor:
        cursor = pages[-1].page.next_cursor if pages else None
        actor = company.administrator.actor
        pages.append(
            list_requests(actor=actor, request_filter=PYTHON, limit=limit, cursor=cursor, now=NOON)
        )
    return pages


def count_audited_lists(company: Company) -> int:
    with tenant_scope(company.tenant_id):
        return AuditEntry.objects.filter(action="request.listed").count()


def test_a_page_with_few_users_of_a_list_with_many_is_not_audited(company: Company) -> None:
    add_requests_of(company, (str(uuid.uuid4()) for _ in range(5)))

    pages = list_all_pages(company, limit=2)

    assert [page.is_small_group for page in pages] == [False, False, False]
    assert count_audited_lists(company) == 0


def test_every_page_of_a_list_with_few_users_is_audited(company: Company) -> None:
    add_requests_of(company, [company.administrator.user_id, company.developer.user_id])

    pages = list_all_pages(company, limit=1)

    assert [page.is_small_group for page in pages] == [True, True]
    assert count_audited_lists(company) == 2
