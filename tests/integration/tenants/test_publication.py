"""Snapshots reach Redis after the commit, in order, despite failures in between."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
import redis
from django.db import transaction
from django.test import override_settings
from django.utils import timezone

import caret.celery  # noqa: F401  # registers the tasks
from caret.contracts.snapshot import (
    CHANGE_CHANNEL,
    CHANGE_COUNTER,
    SNAPSHOTS,
    VERSIONS,
    TenantSnapshot,
    TenantStatus,
    decode_snapshot,
)
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base import redis_connection
from tenants.fleet.snapshots.publisher import (
    publish_snapshot,
    republish_stale_snapshots,
    write_snapshot,
)
from tenants.fleet.snapshots.queries import read_snapshot
from tenants.fleet.tasks import republish_snapshots
from tenants.identity.api_keys.operations import revoke_key
from tenants.identity.api_keys.row_writes import REVOKED_KEY_RETENTION
from tenants.models import Tenant
from tenants.policy.document import DEFAULT_POLICY
from tenants.policy.snapshot_version import mark_all_snapshots_stale, mark_snapshot_stale
from tests.fixtures.companies import GLOBEX_PEOPLE, Company, make_company, make_key
from tests.stack.waiting import wait_until


@pytest.fixture
def acme() -> Company:
    return make_company("acme", GLOBEX_PEOPLE, is_published=True)


@pytest.fixture
def globex() -> Company:
    return make_company("globex", GLOBEX_PEOPLE, is_published=True)


def read_published(tenant_id: TenantId) -> TenantSnapshot:
    data = redis_connection.connect_to_redis().hget(SNAPSHOTS, tenant_id)
    assert isinstance(data, bytes)
    return decode_snapshot(data)


@contextmanager
def unreachable_redis() -> Iterator[None]:
    """Simulate a crash between commit and publication: Postgres has the change, Redis does not."""
    redis_connection.connect_to_redis.cache_clear()
    with override_settings(REDIS_URL="unix:///nonexistent/valkey.sock"):
        try:
            yield
        finally:
            redis_connection.connect_to_redis.cache_clear()


def read_tenant_row(company: Company) -> Tenant:
    return Tenant.objects.get(id=company.tenant_id)


def test_a_new_tenant_is_published_with_its_policy(acme: Company) -> None:
    snapshot = read_published(acme.tenant_id)

    assert snapshot.slug == acme.slug
    assert snapshot.policy.max_concurrent_completions == DEFAULT_POLICY.max_concurrent_completions


def test_a_new_key_is_published_on_commit(acme: Company) -> None:
    created = make_key(acme, acme.developer)

    (credential,) = read_published(acme.tenant_id).credentials
    assert credential.lookup_id == created.key.lookup_id


def test_another_tenants_snapshot_has_none_of_the_keys(acme: Company, globex: Company) -> None:
    make_key(acme, acme.developer)

    publish_snapshot(tenant_id=globex.tenant_id, now=timezone.now())

    assert read_published(globex.tenant_id).credentials == ()


def test_a_revocation_is_published_on_commit(acme: Company) -> None:
    created = make_key(acme, acme.developer)

    revoke_key(
        actor=acme.platform, lookup_id=created.key.lookup_id, reason="lost", now=timezone.now()
    )

    (credential,) = read_published(acme.tenant_id).credentials
    assert credential.revoked_at_ms is not None


def test_a_publication_notifies_gateways_and_increases_the_counter_of_changes(
    acme: Company,
) -> None:
    connection = redis_connection.connect_to_redis()
    listener = connection.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]
    listener.subscribe(CHANGE_CHANNEL)
    wait_until(lambda: _is_subscribed(connection), timeout_s=60)
    count_before = int(connection.get(CHANGE_COUNTER) or 0)

    make_key(acme, acme.developer)

    changed_ids: list[str] = []

    def has_message_of_acme() -> bool:
        message = listener.get_message()  # None: none yet, or the confirmation of the subscription
        if message is not None:
            changed_ids.append(message["data"].decode())
        return acme.tenant_id in changed_ids

    wait_until(has_message_of_acme, timeout_s=60)
    listener.close()
    assert set(changed_ids) == {acme.tenant_id}
    assert int(connection.get(CHANGE_COUNTER) or 0) > count_before


@pytest.mark.parametrize("restored_by", [None, -2], ids=["lost", "restored"])
def test_the_counter_of_changes_never_has_an_earlier_value_again(
    acme: Company, restored_by: int | None
) -> None:
    """Otherwise a gateway could take the snapshots that followed a loss for those it has read."""
    connection = redis_connection.connect_to_redis()
    make_key(acme, acme.developer)
    seen_count = int(connection.get(CHANGE_COUNTER) or 0)

    connection.delete(CHANGE_COUNTER)
    if restored_by is not None:  # Redis has older data again
        connection.set(CHANGE_COUNTER, seen_count + restored_by)
    counts = set()
    for _ in range(3):
        make_key(acme, acme.developer)
        counts.add(int(connection.get(CHANGE_COUNTER) or 0))

    assert len(counts) == 3
    assert min(counts) > seen_count


def _is_subscribed(connection: redis.Redis) -> bool:
    ((_channel, num_subscribers),) = connection.pubsub_numsub(CHANGE_CHANNEL)
    return bool(num_subscribers)


def test_a_change_that_is_rolled_back_is_not_published(acme: Company) -> None:
    version = read_published(acme.tenant_id).version

    with tenant_scope(acme.tenant_id):
        mark_snapshot_stale(tenant_id=acme.tenant_id)
        transaction.set_rollback(True)

    republish_stale_snapshots(now=timezone.now())
    assert read_published(acme.tenant_id).version == version


def test_an_older_snapshot_never_replaces_a_newer_one(acme: Company) -> None:
    older = read_snapshot(tenant_id=acme.tenant_id, now=timezone.now())
    make_key(acme, acme.developer)

    is_written = write_snapshot(redis_connection.connect_to_redis(), older)

    assert not is_written
    assert len(read_published(acme.tenant_id).credentials) == 1


def test_the_published_version_is_recorded(acme: Company) -> None:
    make_key(acme, acme.developer)

    acme_row = read_tenant_row(acme)
    assert acme_row.published_version == acme_row.snapshot_version


def test_a_commit_succeeds_without_delay_when_redis_is_down(
    acme: Company, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeps_s: list[float] = []
    monkeypatch.setattr("redis.retry.sleep", sleeps_s.append)

    with unreachable_redis():
        created = make_key(acme, acme.developer)

    assert created.key.lookup_id not in {
        credential.lookup_id for credential in read_published(acme.tenant_id).credentials
    }
    assert read_tenant_row(acme).published_version < read_tenant_row(acme).snapshot_version
    assert sleeps_s == [], "the client must not wait between its tries"
    output = "".join(capfd.readouterr())
    assert "snapshot.publication_delayed" in output
    assert "Traceback" not in output


def test_a_change_for_all_tenants_tries_to_publish_once_when_redis_is_down(
    acme: Company, globex: Company, capfd: pytest.CaptureFixture[str]
) -> None:
    with unreachable_redis(), transaction.atomic():
        mark_all_snapshots_stale()

    assert "".join(capfd.readouterr()).count("snapshot.publication_delayed") == 1
    assert read_tenant_row(acme).published_version < read_tenant_row(acme).snapshot_version
    republish_snapshots()
    assert read_tenant_row(acme).published_version == read_tenant_row(acme).snapshot_version


def test_a_publication_lost_in_a_crash_is_repeated(acme: Company) -> None:
    created = make_key(acme, acme.developer)
    with unreachable_redis():
        revoke_key(
            actor=acme.platform, lookup_id=created.key.lookup_id, reason="", now=timezone.now()
        )
    assert read_published(acme.tenant_id).credentials[0].revoked_at_ms is None

    republish_snapshots()

    assert read_published(acme.tenant_id).credentials[0].revoked_at_ms is not None


def test_a_snapshot_lost_in_redis_is_published_again(acme: Company) -> None:
    connection = redis_connection.connect_to_redis()
    connection.hdel(SNAPSHOTS, acme.tenant_id)
    connection.hdel(VERSIONS, acme.tenant_id)

    republish_stale_snapshots(now=timezone.now())

    assert read_published(acme.tenant_id).slug == acme.slug


def test_a_missing_snapshot_with_a_known_version_is_published_again(acme: Company) -> None:
    redis_connection.connect_to_redis().hdel(SNAPSHOTS, acme.tenant_id)

    republish_stale_snapshots(now=timezone.now())

    assert read_published(acme.tenant_id).slug == acme.slug


def test_a_restored_database_publishes_a_newer_version_than_redis(acme: Company) -> None:
    # As if version 5000 had been published after the backup of the database.
    redis_connection.connect_to_redis().hset(VERSIONS, acme.tenant_id, "5000")

    republish_stale_snapshots(now=timezone.now())

    assert read_published(acme.tenant_id).version == 5001
    assert read_tenant_row(acme).snapshot_version == 5001


def test_a_second_republication_finds_nothing_to_do(acme: Company) -> None:
    republish_stale_snapshots(now=timezone.now())

    assert republish_stale_snapshots(now=timezone.now()) == 0


def test_two_changes_in_a_transaction_are_two_versions(acme: Company) -> None:
    before = read_tenant_row(acme).snapshot_version

    with transaction.atomic():
        mark_snapshot_stale(tenant_id=acme.tenant_id)
        mark_snapshot_stale(tenant_id=acme.tenant_id)

    assert read_tenant_row(acme).snapshot_version == before + 2
    assert read_published(acme.tenant_id).version == before + 2


def test_keys_revoked_long_ago_are_not_in_the_snapshot(acme: Company) -> None:
    created = make_key(acme, acme.developer)
    revoke_key(actor=acme.platform, lookup_id=created.key.lookup_id, reason="", now=timezone.now())

    later_snapshot = read_snapshot(
        tenant_id=acme.tenant_id,
        now=timezone.now() + REVOKED_KEY_RETENTION + timedelta(days=1),
    )

    assert later_snapshot.credentials == ()


def test_a_tenant_that_cannot_be_published_does_not_delay_others(acme: Company) -> None:
    broken = Tenant.objects.create(
        slug=f"broken-{secrets.token_hex(4)}",
        name="Without a policy",
        status=TenantStatus.ACTIVE,
        created_at=timezone.now(),
    )
    redis_connection.connect_to_redis().hdel(VERSIONS, acme.tenant_id)

    republish_stale_snapshots(now=timezone.now())

    assert redis_connection.connect_to_redis().hexists(VERSIONS, acme.tenant_id)
    assert not redis_connection.connect_to_redis().hexists(VERSIONS, str(broken.id))


def test_a_snapshot_has_a_region_only_if_tenants_are_pinned(acme: Company) -> None:
    now = timezone.now()
    unpinned = read_snapshot(tenant_id=acme.tenant_id, now=now)

    with override_settings(PIN_TENANTS=True):
        pinned = read_snapshot(tenant_id=acme.tenant_id, now=now)

    assert unpinned.region is None
    assert pinned.region == read_tenant_row(acme).region
