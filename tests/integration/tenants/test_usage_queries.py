"""Figures of recent usage count only the requests and outcomes that the caller may see."""

import uuid
from datetime import datetime, timedelta

import pytest

from caret.contracts.usage import FinishReason
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Role
from tenants.models import Outcome, UsageRecord
from tenants.security.authorization.actor import Actor
from tenants.usage.requests.queries import list_usage_by_day, read_recent_usage
from tests.fixtures.companies import GLOBEX_PEOPLE, Company, make_company

NOW = datetime.fromisoformat("2026-11-20T12:30:00+00:00")


@pytest.fixture
def company() -> Company:
    return make_company("initech", GLOBEX_PEOPLE)


def add_record(
    company: Company,
    *,
    ago: timedelta = timedelta(minutes=5),
    finish_reason: FinishReason = FinishReason.STOP,
    first_token_ms: float | None = 50.0,
    user_id: str | None = None,
) -> None:
    with tenant_scope(company.tenant_id):
        UsageRecord.objects.create(
            tenant_id=company.tenant_id,
            occurred_at=NOW - ago,
            request_id=uuid.uuid4(),
            user_id=user_id,
            key_id=uuid.uuid4(),
            protocol="stream",
            mode="inline",
            language="python",
            tier="fast",
            pool="fast",
            replica="fast-0",
            finish_reason=finish_reason,
            error_code="",
            prompt_tokens=100,
            cached_tokens=25,
            generated_tokens=4,
            first_token_ms=first_token_ms,
            total_ms=100.0,
        )


def test_a_tenant_without_usage_has_zero_counts_and_no_percentiles(company: Company) -> None:
    usage = read_recent_usage(actor=company.administrator.actor, now=NOW)

    assert usage.requests == 0
    assert usage.prompt_tokens == 0
    assert usage.first_token_p50_ms is None
    assert usage.hourly_requests == [0] * 24


def test_requests_are_counted_by_finish_reason(company: Company) -> None:
    for finish_reason in (
        FinishReason.STOP,
        FinishReason.LENGTH,
        FinishReason.ERROR,
        FinishReason.CANCELLED,
    ):
        add_record(company, finish_reason=finish_reason)

    usage = read_recent_usage(actor=company.administrator.actor, now=NOW)

    assert (usage.requests, usage.completed, usage.errors) == (4, 2, 1)
    assert (usage.prompt_tokens, usage.cached_tokens, usage.generated_tokens) == (400, 100, 16)


def test_percentiles_cover_only_completed_requests(company: Company) -> None:
    for first_token_ms in (10.0, 20.0, 30.0):
        add_record(company, first_token_ms=first_token_ms)
    add_record(company, finish_reason=FinishReason.CANCELLED, first_token_ms=9_000.0)

    usage = read_recent_usage(actor=company.administrator.actor, now=NOW)

    assert usage.first_token_p50_ms == 20.0
    assert usage.first_token_p99_ms == pytest.approx(29.8)  # interpolated between 20 and 30


def test_recent_usage_covers_the_last_24_hours(company: Company) -> None:
    add_record(company, ago=timedelta(hours=24, seconds=1))
    add_record(company, ago=timedelta(hours=23, minutes=59))

    assert read_recent_usage(actor=company.administrator.actor, now=NOW).requests == 1


def test_hours_are_oldest_first_and_the_last_one_is_running(company: Company) -> None:
    add_record(company, ago=timedelta(minutes=1))
    add_record(company, ago=timedelta(hours=1))

    hours = read_recent_usage(actor=company.administrator.actor, now=NOW).hourly_requests

    assert hours == [0] * 22 + [1, 1]


def test_accepted_suggestions_are_counted(company: Company) -> None:
    with tenant_scope(company.tenant_id):
        for event in ("accepted", "shown"):
            Outcome.objects.create(
                tenant_id=company.tenant_id,
                occurred_at=NOW,
                outcome_id=uuid.uuid4(),
                request_id=uuid.uuid4(),
                event=event,
                chars=1,
                after_ms=0,
            )

    assert read_recent_usage(actor=company.administrator.actor, now=NOW).accepted == 1


def test_another_tenants_usage_is_not_counted(company: Company) -> None:
    other_company = make_company("hooli", GLOBEX_PEOPLE)
    add_record(company)

    assert read_recent_usage(actor=other_company.administrator.actor, now=NOW).requests == 0
    assert (
        list_usage_by_day(actor=other_company.administrator.actor, num_days=1, now=NOW)[0].requests
        == 0
    )


def test_a_developer_sees_only_their_own_usage(company: Company) -> None:
    add_record(company, user_id=company.developer.user_id)
    add_record(company, user_id=company.administrator.user_id)

    assert read_recent_usage(actor=company.developer.actor, now=NOW).requests == 1
    assert list_usage_by_day(actor=company.developer.actor, num_days=1, now=NOW)[0].requests == 1


def test_days_without_usage_are_included(company: Company) -> None:
    add_record(company, ago=timedelta(days=2))

    days = list_usage_by_day(actor=company.administrator.actor, num_days=4, now=NOW)

    requests_by_day = {usage.day.isoformat(): usage.requests for usage in days}
    assert requests_by_day == {
        "2026-11-17": 0,
        "2026-11-18": 1,
        "2026-11-19": 0,
        "2026-11-20": 0,
    }


def test_a_developer_without_a_user_id_sees_no_usage(company: Company) -> None:
    actor = Actor(company.tenant_id, user_id=None, role=Role.DEVELOPER, address=None, request_id="")
    add_record(company, user_id=None)  # a record of a service key is nobody's own

    assert read_recent_usage(actor=actor, now=NOW).requests == 0


@pytest.mark.parametrize("role", [Role.AUDITOR, Role.BILLING])
def test_auditors_and_billing_see_all_usage(company: Company, role: Role) -> None:
    actor = Actor(company.tenant_id, user_id=None, role=role, address=None, request_id="")
    add_record(company, user_id=company.developer.user_id)

    assert read_recent_usage(actor=actor, now=NOW).requests == 1
