"""Set-up for the integration tests, which use Django."""

from datetime import datetime

import pytest
from django.utils import timezone

from tests.stack.django_setup import pytest_configure as pytest_configure


@pytest.fixture
def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> datetime:
    """Stop Django's clock in this process, and return its time.

    So no hour, day or month ends during the test. The clocks of Postgres, of `time.time` and of
    other processes run on.
    """
    now = timezone.now()
    monkeypatch.setattr("django.utils.timezone.now", lambda: now)
    return now
