"""Reported leaked keys are revoked, and their owners are notified."""

from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.core.mail.backends.locmem import EmailBackend
from django.test import override_settings
from django.utils import timezone

import caret.celery  # noqa: F401  # registers the tasks
from caret.contracts.api_key import KeyKind, generate_key
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict
from tenants.base.redis_connection import connect_to_redis
from tenants.identity.api_keys import leak_reports
from tenants.identity.api_keys.leak_reports import (
    MAX_REPORTS_AT_ONCE,
    REPORT_QUEUE,
    build_leak_reports,
    enqueue_reports,
)
from tenants.identity.api_keys.leak_response import process_leak_reports
from tenants.identity.api_keys.operations import KeyRotation, rotate_key
from tenants.identity.api_keys.queries import KeyState, KeyView, find_key
from tenants.identity.api_keys.scopes import KeyScope
from tenants.identity.tasks import process_leak_reports as process_leak_reports_task
from tenants.models import ApiKey, AuditEntry
from tests.fixtures.companies import (
    GLOBEX_PEOPLE,
    Company,
    make_company,
    make_key,
    make_service_key,
)

LOCATION = "https://git.example.com/shop/blob/main/.env#L3"
NUM_PUBLIC_CHARS = 17  # a key begins with "cpk_live_" and the 8 characters of its lookup ID


class UnreachableMailServer(EmailBackend):
    def send_messages(self, messages: Any) -> int:
        raise ConnectionRefusedError


@pytest.fixture
def company() -> Company:
    return make_company("initech", GLOBEX_PEOPLE)


@pytest.fixture(autouse=True)
def _no_reports() -> None:
    connect_to_redis().delete(REPORT_QUEUE)


def report_leak(*texts: str, location: str = LOCATION) -> None:
    enqueue_reports(connect_to_redis(), build_leak_reports(texts, place=location))


def read_key(company: Company, key: KeyView) -> KeyView:
    return find_key(actor=company.platform, lookup_id=key.lookup_id, now=timezone.now())


def count_waiting_reports() -> int:
    return int(connect_to_redis().llen(REPORT_QUEUE))


def test_a_leaked_key_is_revoked_and_its_owner_notified(company: Company) -> None:
    created = make_key(company, company.developer)
    other_key = make_key(company, company.administrator)

    report_leak(f"export KEY={created.text}\n")
    process_leak_reports_task()

    assert read_key(company, created.key).state is KeyState.REVOKED
    assert read_key(company, other_key.key).state is KeyState.ACTIVE
    (message,) = mail.outbox
    assert message.to == [company.developer.email]
    assert created.key.lookup_id in message.body
    assert LOCATION in message.body
    assert created.text[NUM_PUBLIC_CHARS:] not in message.body
    assert count_waiting_reports() == 0


def test_a_leaked_service_keys_managers_are_notified(company: Company) -> None:
    created = make_service_key(company, KeyScope.USAGE_READ)

    report_leak(created.text)
    process_leak_reports(connect_to_redis(), now=timezone.now())

    assert mail.outbox[0].to == [company.administrator.email]


def test_the_audit_entry_has_the_location_but_not_the_secret(company: Company) -> None:
    created = make_key(company, company.developer)

    report_leak(created.text, location=f"https://x.example/?key={created.text}\n")
    process_leak_reports(connect_to_redis(), now=timezone.now())

    with tenant_scope(company.tenant_id):
        entry = AuditEntry.objects.get(action="key.revoked")
    assert entry.actor_kind == "platform"
    assert "https://x.example/?key=cpk_..." in entry.reason
    assert created.text[NUM_PUBLIC_CHARS:] not in str(vars(entry)) + mail.outbox[0].body


def test_queued_reports_contain_no_secret(company: Company) -> None:
    created = make_key(company, company.developer)

    report_leak(created.text)

    assert created.text.encode() not in b"".join(
        leak_reports.peek_reports(connect_to_redis(), limit=10)
    )
    assert count_waiting_reports() == 1


def test_forged_and_unknown_keys_revoke_nothing(company: Company) -> None:
    created, now = make_key(company, company.developer), timezone.now()
    lookup_id = created.key.lookup_id
    rotation = KeyRotation(overlap=timedelta(days=1))
    rotate_key(actor=company.platform, lookup_id=lookup_id, rotation=rotation, now=now)
    forged = generate_key(KeyKind.DEVELOPER, lookup_id=lookup_id)  # has another secret
    # The checksum at the end of the key does not match.
    mistyped = created.text[:-1] + ("y" if created.text.endswith("x") else "x")

    report_leak(forged.text, generate_key(KeyKind.SERVICE).text, "nothing", mistyped)
    process_leak_reports(connect_to_redis(), now=timezone.now())

    found_key = read_key(company, created.key)
    assert found_key.state is KeyState.ACTIVE
    assert found_key.previous_ends_at == now + rotation.overlap  # the old secret stays valid, too
    assert mail.outbox == []
    assert count_waiting_reports() == 0


def test_the_owner_of_a_key_reported_twice_is_notified_once(company: Company) -> None:
    created = make_key(company, company.developer)

    for _ in range(2):
        report_leak(created.text, created.text)
        process_leak_reports(connect_to_redis(), now=timezone.now())

    assert len(mail.outbox) == 1


def test_a_failed_notification_is_sent_later(company: Company) -> None:
    created = make_key(company, company.developer)
    report_leak(created.text)

    with override_settings(EMAIL_BACKEND=f"{__name__}.UnreachableMailServer"):
        process_leak_reports(connect_to_redis(), now=timezone.now())
    assert read_key(company, created.key).state is KeyState.REVOKED
    assert (mail.outbox, count_waiting_reports()) == ([], 1)
    process_leak_reports(connect_to_redis(), now=timezone.now())

    assert (len(mail.outbox), count_waiting_reports()) == (1, 0)


def test_a_leaked_old_secret_ends_and_the_new_one_stays_valid(company: Company) -> None:
    old, now = make_key(company, company.developer), timezone.now()
    new = rotate_key(
        actor=company.platform,
        lookup_id=old.key.lookup_id,
        rotation=KeyRotation(overlap=timedelta(days=1)),
        now=now,
    )

    report_leak(old.text)
    process_leak_reports(connect_to_redis(), now=now + timedelta(seconds=1))

    found_key = read_key(company, new.key)
    assert found_key.state is KeyState.ACTIVE
    assert found_key.previous_ends_at == now + timedelta(seconds=1)
    assert len(mail.outbox) == 1


def test_a_damaged_report_does_not_stop_others(company: Company) -> None:
    created = make_key(company, company.developer)
    connect_to_redis().rpush(REPORT_QUEUE, b"\xff\x00")

    report_leak(created.text)
    process_leak_reports(connect_to_redis(), now=timezone.now())

    assert read_key(company, created.key).state is KeyState.REVOKED
    assert count_waiting_reports() == 0


def test_reports_over_the_queue_limit_are_refused(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One report is accepted: the limit is compared with the number before a report is added.
    monkeypatch.setattr(leak_reports, "MAX_WAITING", 0)
    report_leak(generate_key(KeyKind.TEST).text)

    with pytest.raises(Conflict):
        report_leak(generate_key(KeyKind.TEST).text)


def test_the_number_of_keys_per_report_is_limited() -> None:
    text = " ".join(generate_key(KeyKind.TEST).text for _ in range(MAX_REPORTS_AT_ONCE + 5))

    assert len(build_leak_reports([text], place="")) == MAX_REPORTS_AT_ONCE


def test_the_leak_is_recorded_on_the_key(company: Company) -> None:
    created, now = make_key(company, company.developer), timezone.now()

    report_leak(created.text)
    process_leak_reports(connect_to_redis(), now=now)

    with tenant_scope(company.tenant_id):
        row = ApiKey.objects.get(lookup_id=created.key.lookup_id)
    assert (row.leaked_at, row.leak_notified_at) == (now, now)
