"""A tenant's failure is logged, and the task continues with the other tenants."""

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from structlog.testing import capture_logs

from caret.foundation.ids import TenantId
from tenants.base.worker.failure_log import FailureLog

TENANT = TenantId("0199aaaa-0000-7000-8000-000000000001")


def test_an_error_is_logged_with_its_type_and_without_its_message() -> None:
    with capture_logs() as logs, FailureLog("tests.failed", tenant_id=TENANT, step="first"):
        raise ValueError("customers' code")

    assert logs == [
        {
            "event": "tests.failed",
            "log_level": "error",
            "tenant_id": TENANT,
            "error": "ValueError",
            "step": "first",
        }
    ]


def test_a_success_is_not_logged() -> None:
    with capture_logs() as logs, FailureLog("tests.failed", tenant_id=TENANT):
        pass

    assert logs == []


def test_the_soft_time_limit_is_raised() -> None:
    with pytest.raises(SoftTimeLimitExceeded), FailureLog("tests.failed", tenant_id=TENANT):
        raise SoftTimeLimitExceeded
