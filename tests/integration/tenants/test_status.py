"""An operator changes a tenant's status; owners are mailed, and the gateways get a new snapshot."""

from io import StringIO

import pytest
from django.conf import LazySettings
from django.core import mail
from django.core.management import CommandError, call_command
from django.utils import timezone

from caret.contracts.snapshot import SNAPSHOTS, TenantSnapshot, TenantStatus, decode_snapshot
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base import redis_connection
from tenants.base.errors import Conflict, Forbidden, InvalidValue
from tenants.base.permissions import Role
from tenants.identity.members.tenant_status import purge_cache, set_status
from tenants.identity.sso.operations import OidcProviderConfig, set_provider
from tenants.identity.sso.queries import get_rules
from tenants.models import AuditEntry, Tenant
from tests.fixtures.companies import GLOBEX_PEOPLE, Company, make_company

REASON = ("--reason", "test")


@pytest.fixture
def acme() -> Company:
    return make_company("acme", GLOBEX_PEOPLE, is_published=True)


def read_published(company: Company) -> TenantSnapshot:
    data = redis_connection.connect_to_redis().hget(SNAPSHOTS, company.tenant_id)
    assert isinstance(data, bytes)
    return decode_snapshot(data)


def run_tenant_command(*arguments: str) -> str:
    output = StringIO()
    call_command("tenant", *arguments, stdout=output)
    return output.getvalue()


def test_suspending_and_reactivating_a_tenant_is_published(acme: Company) -> None:
    before = read_published(acme)

    output = run_tenant_command("suspend", acme.slug, "--reason", "unpaid")
    suspended = read_published(acme)
    second_output = run_tenant_command("resume", acme.slug, *REASON)

    assert (before.status, suspended.status) == (TenantStatus.ACTIVE, TenantStatus.SUSPENDED)
    assert read_published(acme).status is TenantStatus.ACTIVE
    assert f"{acme.slug} is suspended" in output
    assert f"{acme.slug} is active" in second_output


def test_purging_the_cache_is_published(acme: Company) -> None:
    output = run_tenant_command("purge-cache", acme.slug)

    assert read_published(acme).cache_epoch == 1
    assert "epoch 1" in output


def test_each_change_is_audited(acme: Company) -> None:
    run_tenant_command("suspend", acme.slug, "--reason", "unpaid")
    run_tenant_command("purge-cache", acme.slug)

    with tenant_scope(acme.tenant_id):
        entries = AuditEntry.objects.filter(target=f"tenant:{acme.slug}").order_by("sequence")
        _creation_entry, status_entry, cache_entry = entries
    assert (status_entry.action, status_entry.reason) == ("tenant.status_changed", "unpaid")
    assert status_entry.before == {"status": "active"}
    assert status_entry.after == {"status": "suspended"}
    assert (cache_entry.action, cache_entry.before, cache_entry.after) == (
        "tenant.cache_purged",
        {"cache_epoch": 0},
        {"cache_epoch": 1},
    )


def test_each_new_status_is_mailed_to_the_owners(settings: LazySettings) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    mail.outbox = []
    initech = make_company("initech", {Role.OWNER: "olga", Role.DEVELOPER: "ada"})

    run_tenant_command("suspend", initech.slug, "--reason", "unpaid")
    run_tenant_command("close", initech.slug, "--grace-days", "14", *REASON)

    suspended, closing = mail.outbox
    assert suspended.to == [initech.people[Role.OWNER].email]
    assert suspended.subject.endswith("was suspended")
    assert "Reason: unpaid" in suspended.body
    assert "contact the operator" in suspended.body
    assert closing.subject.endswith("is closing")
    closes_at = Tenant.objects.get(id=initech.tenant_id).closes_at
    assert f"On {closes_at:%Y-%m-%d}, we will close the tenant and delete its data." in closing.body
    assert "/exports" in closing.body


def test_the_status_changes_even_if_the_mail_server_is_unavailable(settings: LazySettings) -> None:
    settings.EMAIL_BACKEND = (
        "tests.integration.sign_in.test_password_reset_requests.UnavailableMailServer"
    )
    initech = make_company("initech", {Role.OWNER: "olga"})

    run_tenant_command("suspend", initech.slug, *REASON)

    assert read_published(initech).status is TenantStatus.SUSPENDED


def test_another_tenant_is_unchanged(acme: Company) -> None:
    globex = make_company("globex", GLOBEX_PEOPLE, is_published=True)
    before = read_published(globex)

    run_tenant_command("suspend", acme.slug, *REASON)
    run_tenant_command("purge-cache", acme.slug)

    assert read_published(globex) == before


def test_setting_the_current_status_is_refused(acme: Company) -> None:
    before = read_published(acme)

    with pytest.raises(CommandError, match="already active"):
        run_tenant_command("resume", acme.slug, *REASON)

    assert read_published(acme) == before


def test_a_tenant_must_be_closing_before_it_is_closed(acme: Company) -> None:
    with pytest.raises(CommandError, match="is active and cannot become closed"):
        run_tenant_command("close-now", acme.slug, "--confirm", acme.slug, *REASON)

    run_tenant_command("close", acme.slug, *REASON)
    # The slug is not "acme": `make_company` adds random characters to the name.
    with pytest.raises(CommandError, match="must repeat the tenant's slug"):
        run_tenant_command("close-now", acme.slug, "--confirm", "acme", *REASON)
    run_tenant_command("close-now", acme.slug, "--confirm", acme.slug, *REASON)

    assert read_published(acme).status is TenantStatus.CLOSED


@pytest.mark.parametrize("steps", [["resume"], ["suspend", "close", "suspend", "resume"]])
def test_closing_can_be_cancelled(acme: Company, steps: list[str]) -> None:
    run_tenant_command("close", acme.slug, *REASON)

    for step in steps:
        run_tenant_command(step, acme.slug, *REASON)

    assert read_published(acme).status is TenantStatus.ACTIVE
    assert Tenant.objects.get(id=acme.tenant_id).closes_at is None


def test_a_closed_tenant_stays_closed(acme: Company) -> None:
    run_tenant_command("close", acme.slug, *REASON)
    run_tenant_command("close-now", acme.slug, "--confirm", acme.slug, *REASON)

    for status in TenantStatus:
        with pytest.raises(Conflict, match="closed"):
            set_status(actor=acme.platform, status=status, reason="", now=timezone.now())


def test_an_administrator_cannot_suspend_their_tenant(acme: Company) -> None:
    alice = acme.administrator.actor

    with pytest.raises(Forbidden):
        set_status(actor=alice, status=TenantStatus.SUSPENDED, reason="", now=timezone.now())


def test_an_administrator_can_purge_the_cache(acme: Company) -> None:
    purge_cache(actor=acme.administrator.actor, reason="a leak", now=timezone.now())

    assert read_published(acme).cache_epoch == 1


def test_a_developer_cannot_purge_the_cache(acme: Company) -> None:
    with pytest.raises(Forbidden):
        purge_cache(actor=acme.developer.actor, reason="", now=timezone.now())

    assert read_published(acme).cache_epoch == 0


def test_a_reason_with_a_nul_character_is_refused(acme: Company) -> None:
    with pytest.raises(InvalidValue):
        purge_cache(actor=acme.platform, reason="\0", now=timezone.now())


def test_an_unknown_tenant_is_an_error_of_the_command() -> None:
    with pytest.raises(CommandError, match="does not exist"):
        run_tenant_command("suspend", "nobody-here", *REASON)


def test_an_operator_can_remove_a_tenants_identity_provider(acme: Company) -> None:
    other = make_company("globex", GLOBEX_PEOPLE)
    provider = OidcProviderConfig("https://id.example", "caret", "the secret")
    for company in (acme, other):
        set_provider(actor=company.platform, new=provider, now=timezone.now())

    output = run_tenant_command(
        "drop-identity-provider", acme.slug, "--reason", "its certificate expired"
    )

    assert "Removed https://id.example." in output
    assert get_rules(actor=acme.platform).provider is None
    assert get_rules(actor=other.platform).provider is not None
    with tenant_scope(acme.tenant_id):
        entry = AuditEntry.objects.get(action="identity_provider.removed")
    assert (entry.actor_kind, entry.reason) == ("platform", "its certificate expired")


def test_removing_a_missing_provider_is_an_error(acme: Company) -> None:
    with pytest.raises(CommandError, match="has no identity provider"):
        run_tenant_command("drop-identity-provider", acme.slug, *REASON)
