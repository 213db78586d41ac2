"""Old data is purged, data on hold stays, and a certificate records the purge."""

import itertools
import json
import uuid
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.db import ProgrammingError
from django.utils import timezone

from caret.foundation.crypto.signing import BadSignature
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, Forbidden, InvalidValue, NotFound, VersionConflict
from tenants.base.permissions import Role
from tenants.base.signatures.signing_keys import load_signing_keys
from tenants.models import AuditEntry, PurgeRun, UsageRecord
from tenants.policy.data_classes import DATA_CLASSES, DataClass
from tenants.policy.document import DEFAULT_POLICY, serialize_policy
from tenants.policy.operations import set_policy
from tenants.privacy.retention import purge as purging
from tenants.privacy.retention.operations import NewHold, place_hold, release_hold, set_rule
from tenants.privacy.retention.purge import purge_data_class, purge_due
from tenants.privacy.retention.queries import (
    DataClassReport,
    find_certificate,
    list_certificates,
    list_data_class_reports,
    list_holds,
    list_runs,
)
from tenants.privacy.retention.tables import RETENTION_TABLES, delete_due_batch
from tenants.privacy.retention.verification import verify_certificate
from tenants.security.audit.queries import AuditFilter, list_entries
from tenants.security.authorization.actor import Actor
from tests.fixtures.companies import ACME_PEOPLE, Cast, Company, make_company, make_completion

# The database's own clock decides which records are recent, so a fixed time would not work.
NOW = datetime.now(UTC).replace(microsecond=0)
USAGE, LIMITS = DataClass.USAGE, DATA_CLASSES[DataClass.USAGE]


@pytest.fixture
def company() -> Company:
    return make_company("umbrella", ACME_PEOPLE)


def add_records_of_age(company: Company, *ages_days: int, role: Role = Role.DEVELOPER) -> None:
    """Add, for each age in days, a completion of now and a copy of it with that age."""
    for age in ages_days:
        request_id = make_completion(company, company.people[role])
        with tenant_scope(company.tenant_id):
            row = UsageRecord.objects.get(tenant_id=company.tenant_id, request_id=request_id)
            row.occurred_at = NOW - timedelta(days=age)
            row.request_id = uuid.uuid4()
            row.save(force_insert=True)


def make_hold(**bounds: Any) -> NewHold:
    """Return a hold. Without bounds, it is for all users and all times."""
    return NewHold(name="m", reason="r", **bounds)


def owner(company: Company) -> Actor:
    return company.people[Role.OWNER].actor


def find_usage_report(company: Company, now: datetime = NOW) -> DataClassReport:
    reports = list_data_class_reports(actor=owner(company), now=now)
    return next(report for report in reports if report.data_class is USAGE)


def count_old_records(company: Company) -> int:
    with tenant_scope(company.tenant_id):
        return UsageRecord.objects.filter(
            tenant_id=company.tenant_id, occurred_at__lt=NOW - timedelta(days=1)
        ).count()


def purge_usage(company: Company, now: datetime = NOW, *, batch: int = 1_000) -> int:
    return purge_data_class(tenant_id=company.tenant_id, data_class=USAGE, now=now, batch=batch)


def test_records_older_than_their_retention_are_purged(company: Company) -> None:
    add_records_of_age(company, 399, 401, 900)

    assert purge_usage(company) == 2
    assert count_old_records(company) == 1


def test_opening_plus_created_minus_deleted_is_closing(company: Company) -> None:
    add_records_of_age(company, 100, 500, 600)
    purge_usage(company)
    add_records_of_age(company, 10)
    purge_usage(company, NOW + timedelta(days=1))

    newest, first = list_runs(actor=owner(company), limit=10, cursor=None).rows

    assert first.deleted == 2
    for run in (newest, first):
        # `created` is None only for an active run.
        assert run.opening + (run.created or 0) - run.deleted == run.closing
    assert newest.opening == first.closing
    assert (newest.created, newest.deleted) == (2, 0)  # a completion of now, and its older copy


def test_an_interrupted_purge_is_continued(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_records_of_age(company, 500, 501, 502, 503)
    # The first purge deletes one batch, and is killed before it finishes its run.
    delete_batch, num_calls = purging._delete_batch, itertools.count()

    def delete_only_the_first_batch(run: PurgeRun, batch: int, now: datetime) -> bool:
        return next(num_calls) == 0 and delete_batch(run, batch, now)

    with monkeypatch.context() as context:
        context.setattr(purging, "_delete_batch", delete_only_the_first_batch)
        context.setattr(purging, "_finish_run", lambda *_: pytest.fail("killed"))
        with pytest.raises(pytest.fail.Exception):
            purge_usage(company, batch=1)
    num_left = count_old_records(company)

    deleted = purge_usage(company, NOW + timedelta(days=300))  # continues with the first cutoff

    # The number of deleted records is that of the whole run, with the interrupted part.
    assert (num_left, deleted, count_old_records(company)) == (3, 4, 0)
    (run,) = list_runs(actor=owner(company), limit=10, cursor=None).rows
    assert run.cutoff == NOW - timedelta(days=LIMITS.default_days)


def test_a_purge_that_begins_during_another_shares_its_run(company: Company) -> None:
    add_records_of_age(company, 500)
    run = purging._begin_run(company.tenant_id, USAGE, NOW)

    assert purging._begin_run(company.tenant_id, USAGE, NOW).id == run.id


def test_a_purge_is_certified(company: Company) -> None:
    add_records_of_age(company, 500, 10)
    purge_usage(company)

    (certificate,) = list_certificates(actor=owner(company), limit=10, cursor=None).rows
    document = verify_certificate(certificate.document.encode(), load_signing_keys().public_keys())

    assert document["number"] == 1
    assert (document["data_class"], document["deleted"], document["held"]) == (USAGE, 1, 0)
    assert document["opening"] + document["created"] - document["deleted"] == document["closing"]
    assert find_certificate(actor=owner(company), certificate_id=certificate.id) == certificate


def test_a_purge_without_deletions_is_not_certified(company: Company) -> None:
    purge_usage(company)

    assert list_certificates(actor=owner(company), limit=10, cursor=None).rows == []


def test_every_changed_byte_of_a_certificate_is_detected(company: Company) -> None:
    add_records_of_age(company, 500)
    purge_usage(company)
    text = list_certificates(actor=owner(company), limit=1, cursor=None).rows[0].document.encode()
    keys = load_signing_keys().public_keys()

    for index in range(len(text)):
        changed_text = bytearray(text)
        changed_text[index] ^= 1
        with pytest.raises(BadSignature):
            verify_certificate(bytes(changed_text), keys)


def test_a_reformatted_certificate_is_refused(company: Company) -> None:
    add_records_of_age(company, 500)
    purge_usage(company)
    document = json.loads(
        list_certificates(actor=owner(company), limit=1, cursor=None).rows[0].document
    )

    with pytest.raises(BadSignature):
        verify_certificate(json.dumps(document).encode(), load_signing_keys().public_keys())


def test_a_purge_is_audited(company: Company) -> None:
    add_records_of_age(company, 500)
    purge_usage(company)

    query = AuditFilter(action="retention.purged")
    page = list_entries(
        actor=owner(company), audit_filter=query, limit=10, cursor=None, now=timezone.now()
    )

    assert [entry.after for entry in page.rows] == [{"deleted": 1, "certificate": 1}]


def test_records_on_hold_stay_until_the_release(company: Company) -> None:
    add_records_of_age(company, 500)
    hold = place_hold(actor=owner(company), new=NewHold(name="matter", reason="letter"), now=NOW)

    num_purged, usage_count = purge_usage(company), find_usage_report(company).count
    release_hold(actor=owner(company), hold_id=hold, reason="settled", now=NOW)

    assert num_purged == 0
    assert usage_count is not None
    assert (usage_count.due, usage_count.held) == (0, 1)
    assert purge_usage(company) == 1


def test_a_hold_on_a_user_does_not_keep_records_of_others(company: Company) -> None:
    add_records_of_age(company, 500)
    add_records_of_age(company, 500, role=Role.ADMINISTRATOR)
    user_id = uuid.UUID(company.developer.user_id)
    place_hold(actor=owner(company), new=make_hold(user_id=user_id), now=NOW)

    assert purge_usage(company) == 1


def test_a_hold_on_a_period_does_not_keep_other_records(company: Company) -> None:
    add_records_of_age(company, 500, 600, 700)
    since, until = NOW - timedelta(days=650), NOW - timedelta(days=550)
    place_hold(actor=owner(company), new=make_hold(since=since, until=until), now=NOW)

    assert purge_usage(company) == 2


def test_a_tenants_own_retention_applies_to_the_next_purge(company: Company) -> None:
    add_records_of_age(company, 100)
    rule = set_rule(actor=owner(company), data_class=USAGE, days=90, reason="annex", now=NOW)

    assert (rule.days, rule.version) == (90, 1)
    assert purge_usage(company) == 1
    (run,) = list_runs(actor=owner(company), limit=10, cursor=None).rows
    assert (run.days, run.rule_version) == (90, 1)


def test_the_policy_can_shorten_retention(company: Company) -> None:
    policy = serialize_policy(DEFAULT_POLICY) | {"retention_days": {"usage_records": 70}}
    set_policy(actor=owner(company), document=policy, reason="x", now=NOW)
    add_records_of_age(company, 80)

    assert find_usage_report(company).rule.days == 70
    assert purge_usage(company) == 1


def test_records_not_purged_in_time_are_reported_as_overdue(company: Company) -> None:
    add_records_of_age(company, 401, 403)

    # Records are kept for 400 days, and are overdue two days later.
    assert find_usage_report(company).overdue == 1


def test_every_data_class_is_in_the_report(company: Company) -> None:
    reports = list_data_class_reports(actor=owner(company), now=NOW)

    assert [report.data_class for report in reports] == list(DATA_CLASSES)


@pytest.mark.parametrize("days", [0, LIMITS.min_days - 1, LIMITS.max_days + 1])
def test_invalid_retention_days_are_refused(company: Company, days: int) -> None:
    with pytest.raises(InvalidValue) as exc_info:
        set_rule(actor=owner(company), data_class=USAGE, days=days, reason="x", now=NOW)

    assert exc_info.value.field == "days"


@pytest.mark.parametrize("data_class", [DataClass.SESSIONS, DataClass.LOGS, DataClass.IDEMPOTENCY])
def test_fixed_retention_cannot_be_changed(company: Company, data_class: DataClass) -> None:
    with pytest.raises(Conflict):
        set_rule(actor=owner(company), data_class=data_class, days=14, reason="x", now=NOW)


def test_a_concurrent_change_of_a_rule_is_a_conflict(company: Company) -> None:
    change = partial(set_rule, actor=owner(company), data_class=USAGE, reason="x", now=NOW)
    change(days=90, expected_version=0)  # 0: there is no rule yet

    with pytest.raises(VersionConflict) as exc_info:
        change(days=80, expected_version=0)
    assert (exc_info.value.current_version, exc_info.value.expected_version) == (1, 0)


def test_a_change_requires_a_reason(company: Company) -> None:
    with pytest.raises(InvalidValue):
        set_rule(actor=owner(company), data_class=USAGE, days=90, reason=" ", now=NOW)


def test_a_hold_must_end_after_its_start(company: Company) -> None:
    with pytest.raises(InvalidValue):
        place_hold(actor=owner(company), new=make_hold(since=NOW, until=NOW), now=NOW)


@pytest.mark.parametrize(
    ("field", "text"),
    [("since", "0001-01-01T00:00:00+14:00"), ("until", "9999-12-31T23:59:59-12:00")],
)
def test_a_hold_with_an_unrepresentable_time_is_refused(
    company: Company, field: str, text: str
) -> None:
    bounds: dict[str, Any] = {field: datetime.fromisoformat(text)}

    with pytest.raises(InvalidValue) as exc_info:
        place_hold(actor=owner(company), new=make_hold(**bounds), now=NOW)

    assert exc_info.value.field == field
    assert list_holds(actor=owner(company), limit=10, cursor=None).rows == []


def test_a_hold_on_an_unknown_user_is_refused(company: Company) -> None:
    with pytest.raises(InvalidValue):
        place_hold(actor=owner(company), new=make_hold(user_id=uuid.uuid4()), now=NOW)


def test_a_hold_is_released_once(company: Company) -> None:
    hold = place_hold(actor=owner(company), new=make_hold(), now=NOW)
    release_hold(actor=owner(company), hold_id=hold, reason="x", now=NOW)

    with pytest.raises(Conflict):
        release_hold(actor=owner(company), hold_id=hold, reason="x", now=NOW)


@pytest.mark.parametrize("role", [Role.BILLING, Role.DEVELOPER, Role.AUDITOR])
def test_setting_retention_and_holds_requires_permission(cast: Cast, role: Role) -> None:
    actor = cast.acme.people[role].actor

    with pytest.raises(Forbidden):
        set_rule(actor=actor, data_class=USAGE, days=90, reason="x", now=NOW)
    with pytest.raises(Forbidden):
        place_hold(actor=actor, new=make_hold(), now=NOW)
    with pytest.raises(Forbidden):
        release_hold(actor=actor, hold_id=uuid.uuid4(), reason="x", now=NOW)


def test_retention_and_holds_do_not_affect_another_tenant(company: Company) -> None:
    globex = make_company("globex", ACME_PEOPLE)  # not GLOBEX_PEOPLE, which has no owner
    add_records_of_age(company, 500)
    add_records_of_age(globex, 500)
    hold = place_hold(actor=owner(company), new=make_hold(), now=NOW)

    with pytest.raises(NotFound):
        release_hold(actor=owner(globex), hold_id=hold, reason="x", now=NOW)
    assert list_holds(actor=owner(globex), limit=9, cursor=None).rows == []
    assert (purge_usage(globex), purge_usage(company)) == (1, 0)


def test_all_data_classes_that_have_retention_tables_are_purged(company: Company) -> None:
    add_records_of_age(company, 500)

    assert purge_due(now=NOW, tenant_ids=[company.tenant_id]) == 1
    with tenant_scope(company.tenant_id):
        purge_runs = PurgeRun.objects.filter(tenant_id=company.tenant_id)
        # Data classes without such a table, for example captured content, are purged elsewhere.
        assert {run.data_class for run in purge_runs} == set(RETENTION_TABLES)


def test_a_failing_data_class_does_not_stop_others(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_records_of_age(company, 500)
    delete = delete_due_batch

    def fail_for_audit_entries(data_class: DataClass, **arguments: Any) -> int:
        if data_class is DataClass.AUDIT:
            raise OSError
        return delete(data_class, **arguments)

    monkeypatch.setattr(purging, "delete_due_batch", fail_for_audit_entries)

    assert purge_due(now=NOW, tenant_ids=[company.tenant_id]) == 1  # the old usage record
    runs = list_runs(actor=owner(company), limit=10, cursor=None).rows
    (unfinished,) = [run for run in runs if run.finished_at is None]
    assert unfinished.data_class is DataClass.AUDIT


def test_the_database_does_not_delete_recent_records(company: Company) -> None:
    """Row-level security keeps usage records for 62 days, whatever the statement."""
    add_records_of_age(company, 61, 63)

    with tenant_scope(company.tenant_id):
        # `_raw_delete` sends one DELETE statement for all rows of the query.
        UsageRecord.objects.filter(tenant_id=company.tenant_id)._raw_delete("default")
        AuditEntry.objects.filter(tenant_id=company.tenant_id)._raw_delete("default")
        ages = {
            (timezone.now() - row.occurred_at).days
            for row in UsageRecord.objects.filter(tenant_id=company.tenant_id)
        }
        assert AuditEntry.objects.filter(tenant_id=company.tenant_id).exists()
    assert max(ages) == 61


def test_a_longer_retention_applies_to_a_running_purge(company: Company) -> None:
    set_rule(actor=owner(company), data_class=USAGE, days=90, reason="x", now=NOW)
    add_records_of_age(company, 100, 500)
    purging._begin_run(company.tenant_id, USAGE, NOW)
    set_rule(actor=owner(company), data_class=USAGE, days=400, reason="x", now=NOW)

    assert purge_usage(company) == 1


def test_audit_entries_cannot_be_updated(company: Company) -> None:
    with pytest.raises(ProgrammingError), tenant_scope(company.tenant_id):
        AuditEntry.objects.filter(tenant_id=company.tenant_id).update(reason="another")
