"""A tenant with many API keys."""

from datetime import datetime

from django.utils import timezone

from caret.contracts.api_key import KeyKind
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.models import ApiKey
from tests.fixtures.companies import Company


def fill_with_keys(company: Company, count: int, *, revoked_at: datetime | None = None) -> None:
    with tenant_scope(company.tenant_id):
        ApiKey.objects.bulk_create(
            ApiKey(
                tenant_id=company.tenant_id,
                lookup_id=f"{number:08x}",
                digest=b"",
                pepper_version=1,
                kind=KeyKind.SERVICE,
                name="one of many",
                created_at=timezone.now(),
                revoked_at=revoked_at,
            )
            for number in range(count)
        )
