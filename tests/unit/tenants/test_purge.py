"""A purge ends at the soft time limit of its task."""

import uuid
from datetime import UTC, datetime

import pytest
from celery.exceptions import SoftTimeLimitExceeded

from caret.foundation.ids import TenantId
from tenants.policy.data_classes import DataClass
from tenants.privacy.retention import purge


def test_the_soft_time_limit_ends_the_purge(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[DataClass] = []

    def exceed_time_limit(*, data_class: DataClass, **_: object) -> int:
        begun.append(data_class)
        raise SoftTimeLimitExceeded

    monkeypatch.setattr(purge, "purge_data_class", exceed_time_limit)

    with pytest.raises(SoftTimeLimitExceeded):
        purge.purge_due(now=datetime.now(UTC), tenant_ids=[TenantId(str(uuid.uuid4()))])

    assert len(begun) == 1
