"""Changes of a tenant's status by the operator, and the gateways' snapshots."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from caret.contracts.snapshot import SNAPSHOTS, TenantSnapshot, TenantStatus, decode_snapshot
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base import redis_connection
from tenants.base.errors import Conflict, Forbidden, InvalidValue
from tenants.identity.members.tenant_status import purge_cache, set_status
from tenants.identity.sso.operations import OidcProviderConfig, set_provider
from tenants.identity.sso.queries import get_rules
from tenants.models import AuditEntry
from tests.fixtures.companies import GLOBEX, Company, make_company


@pytest.fixture
def acme() -> Company:
    return make_company("acme", GLOBEX)


def published(company: Company) -> TenantSnapshot:
    data = redis_connection.connect().hget(SNAPSHOTS, company.tenant_id)
    assert isinstance(data, bytes)
    return decode_snapshot(data)


def run(*arguments: str) -> str:
    told = StringIO()
    call_command("tenant", *arguments, stdout=told)
    return told.getvalue()


def test_gateways_learn_that_a_tenant_is_suspended_and_active_again(acme: Company) -> None:
    before = published(acme)

    told = run("suspend", acme.slug, "--reason", "unpaid")
    suspended = published(acme)
    told_again = run("resume", acme.slug)

    assert (before.status, suspended.status) == (TenantStatus.ACTIVE, TenantStatus.SUSPENDED)
    assert published(acme).status is TenantStatus.ACTIVE
    assert f"{acme.slug} is suspended" in told
    assert f"{acme.slug} is active" in told_again


def test_gateways_learn_that_the_cache_is_to_be_forgotten(acme: Company) -> None:
    told = run("purge-cache", acme.slug)

    assert published(acme).cache_epoch == 1
    assert "epoch 1" in told


def test_each_is_in_the_audit_trail(acme: Company) -> None:
    run("suspend", acme.slug, "--reason", "unpaid")
    run("purge-cache", acme.slug)

    with tenant_scope(acme.tenant_id):
        status, cache = AuditEntry.objects.filter(target=f"tenant:{acme.slug}").order_by("id")[1:]
    assert (status.action, status.reason) == ("tenant.status_changed", "unpaid")
    assert (status.before, status.after) == ({"status": "active"}, {"status": "suspended"})
    assert (cache.action, cache.before, cache.after) == (
        "tenant.cache_purged",
        {"cache_epoch": 0},
        {"cache_epoch": 1},
    )


def test_the_neighbour_is_left_as_he_is(acme: Company) -> None:
    globex = make_company("globex", GLOBEX)
    before = published(globex)

    run("suspend", acme.slug)
    run("purge-cache", acme.slug)

    assert published(globex) == before


def test_a_change_to_what_it_is_already_is_no_change(acme: Company) -> None:
    before = published(acme)

    with pytest.raises(CommandError, match="already active"):
        run("resume", acme.slug)

    assert published(acme) == before


def test_a_tenant_is_closed_by_way_of_suspending_and_closing(acme: Company) -> None:
    with pytest.raises(CommandError, match="is active and cannot become closed"):
        run("close", acme.slug)

    for step in ("suspend", "begin-closing", "close"):
        run(step, acme.slug)

    assert published(acme).status is TenantStatus.CLOSED


def test_closing_can_be_thought_over(acme: Company) -> None:
    for step in ("suspend", "begin-closing", "suspend", "resume"):
        run(step, acme.slug)

    assert published(acme).status is TenantStatus.ACTIVE


def test_a_closed_tenant_stays_closed(acme: Company) -> None:
    for step in ("suspend", "begin-closing", "close"):
        run(step, acme.slug)

    with pytest.raises(Conflict, match="closed"):
        set_status(actor=acme.platform, status=TenantStatus.ACTIVE, reason="", now=timezone.now())


def test_its_own_administrator_may_not_stop_it(acme: Company) -> None:
    alice = acme.administrator.actor

    with pytest.raises(Forbidden):
        set_status(actor=alice, status=TenantStatus.SUSPENDED, reason="", now=timezone.now())


def test_its_own_administrator_has_its_cache_forgotten(acme: Company) -> None:
    purge_cache(actor=acme.administrator.actor, reason="a leak", now=timezone.now())

    assert published(acme).cache_epoch == 1


def test_a_developer_has_nothing_forgotten(acme: Company) -> None:
    with pytest.raises(Forbidden):
        purge_cache(actor=acme.developer.actor, reason="", now=timezone.now())

    assert published(acme).cache_epoch == 0


def test_a_reason_that_cannot_be_kept_is_refused(acme: Company) -> None:
    with pytest.raises(InvalidValue):
        purge_cache(actor=acme.platform, reason="\0", now=timezone.now())


def test_an_unknown_tenant_is_an_error_of_the_command() -> None:
    with pytest.raises(CommandError, match="no tenant"):
        run("suspend", "nobody-here")


def test_a_tenant_that_its_provider_locks_out_signs_in_by_password_again(acme: Company) -> None:
    other = make_company("globex", GLOBEX)
    new = OidcProviderConfig("https://id.example", "caret", "the secret")
    for company in (acme, other):
        set_provider(actor=company.platform, new=new, now=timezone.now())

    told = run("drop-identity-provider", acme.slug, "--reason", "its certificate ran out")

    assert "https://id.example lets nobody in any more" in told
    assert get_rules(actor=acme.platform).provider is None
    assert get_rules(actor=other.platform).provider is not None
    with tenant_scope(acme.tenant_id):
        entry = AuditEntry.objects.get(action="identity_provider.removed")
    assert (entry.actor_kind, entry.reason) == ("platform", "its certificate ran out")


def test_where_there_is_no_provider_that_is_said(acme: Company) -> None:
    with pytest.raises(CommandError, match="has no identity provider"):
        run("drop-identity-provider", acme.slug)
