"""Requests of today, and their rollups, for the pages that show usage."""

from datetime import UTC, datetime, timedelta

from django.utils import timezone

from tenants.base.permissions import Role
from tenants.usage.rollups.operations import roll_up_tenant
from tests.fixtures.companies import Company, Person
from tests.fixtures.users import make_colleague
from tests.integration.tenants.records import add_completion, add_outcome


def minutes_ago(minutes: float) -> datetime:
    return timezone.now().astimezone(UTC) - timedelta(minutes=minutes)


def add_requests(
    company: Company,
    person: Person,
    *,
    num: int = 1,
    accepted: int = 0,
    at: datetime | None = None,
    **fields: object,
) -> None:
    """Add requests with one suggestion each. `accepted` of these are accepted, the rest rejected.

    By default they are some seconds old, so they count for the last minute.
    """
    at = at or minutes_ago(0.1)
    for number in range(num):
        values = {"at": at, "user_id": person.user_id, "first_token_ms": 40.0, **fields}
        request_id = add_completion(company, **values)  # type: ignore[arg-type]  # the fields of a record have many types
        event = "accepted" if number < accepted else "rejected"
        add_outcome(company, request_id, event, occurred_at=at, user_id=person.user_id)


def make_colleagues(company: Company, num: int) -> list[Person]:
    return [make_colleague(company, Role.DEVELOPER) for _ in range(num)]


def roll_up(company: Company) -> None:
    roll_up_tenant(tenant_id=company.tenant_id, arrived_until=timezone.now())
