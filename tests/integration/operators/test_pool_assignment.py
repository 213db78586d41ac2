"""Pools that operators assign to a tenant, by what a real gateway reports."""

import secrets
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from caret.contracts.snapshot import SNAPSHOTS, decode_snapshot
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base import redis_connection
from tenants.base.errors import Forbidden
from tenants.base.permissions import Role
from tenants.fleet.pools.assignment import assign_pools, list_pools
from tenants.models import AuditEntry
from tenants.security.authorization.directory import find_tenant
from tests.fixtures.companies import ACME, make_company
from tests.integration.operators.browsers import with_recent_step_up
from tests.integration.operators.gateways import Gateway


@pytest.fixture
def slug() -> str:
    return f"bream-{secrets.token_hex(4)}"


def create(slug: str, *pools: str) -> None:
    names = ("--name", "Bream", "--owner", f"olga@{slug}.example")
    chosen = [argument for pool in pools for argument in ("--pool", pool)]
    call_command("tenant", "create", slug, *names, *chosen, stdout=StringIO())


def published_pools(slug: str) -> tuple[str, ...]:
    tenant_id = find_tenant(slug=slug)
    assert tenant_id is not None
    data = redis_connection.connect().hget(SNAPSHOTS, tenant_id)
    assert isinstance(data, bytes)
    return decode_snapshot(data).pools


def reasons(tenant_id: TenantId | None) -> list[tuple[object, str]]:
    assert tenant_id is not None
    with tenant_scope(tenant_id):
        found = AuditEntry.objects.filter(action="tenant.pools_assigned").order_by("sequence")
        return [(entry.after, entry.reason) for entry in found]


def test_a_new_tenant_gets_its_pools_and_other_ones_later(gateway: Gateway, slug: str) -> None:
    fast, quality = (
        next(name for name, of_tier in list_pools().items() if of_tier == tier)
        for tier in ("fast", "quality")
    )

    create(slug, fast, quality)
    both = published_pools(slug)
    call_command("tenant", "assign-pools", slug, "--pool", quality, "--reason", "moved")
    one = published_pools(slug)
    call_command("tenant", "assign-pools", slug)

    assert both == tuple(sorted((fast, quality)))
    assert (one, published_pools(slug)) == ((quality,), ())
    assert reasons(find_tenant(slug=slug)) == [
        ({"pools": ", ".join(both)}, ""),
        ({"pools": quality}, "moved"),
        ({"pools": ""}, ""),
    ]


def test_the_forms_offer_the_pools_of_each_tier(gateway: Gateway, slug: str) -> None:
    acme, browser = make_company("bream", ACME), with_recent_step_up()
    form = {"slug": slug, "name": "Bream", "owner_email": f"olga@{slug}.example"}
    browser.open_tenant(acme)

    page = browser.client.get("/operators/tenants/new").content.decode()
    created = browser.client.post("/operators/tenants/new", {**form, "pools": ["demo-fast", ""]})
    changed = browser.change(acme, "pools", pools="demo-fast")
    chosen = browser.page(acme).content.decode()
    unknown = browser.change(acme, "pools", pools="gold")

    assert "<option>demo-fast</option>" in page
    assert (created.status_code, changed.status_code, unknown.status_code) == (201, 302, 400)
    assert published_pools(slug) == published_pools(acme.slug) == ("demo-fast",)
    assert "<option selected>demo-fast</option>" in chosen
    assert "There is no pool gold." in unknown.content.decode()


def test_an_unknown_pool_is_named_and_nothing_is_created(gateway: Gateway, slug: str) -> None:
    with pytest.raises(CommandError, match=r"There is no pool gold\. The pools are demo-fast, "):
        create(slug, "gold")

    assert find_tenant(slug=slug) is None


def test_a_tenant_has_at_most_one_pool_of_a_tier(
    gateway: Gateway, slug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiers = {"one": "fast", "two": "fast"}
    monkeypatch.setattr("tenants.fleet.pools.assignment.list_pools", lambda: tiers)

    with pytest.raises(CommandError, match="at most one pool of the tier fast"):
        create(slug, "one", "two")

    assert find_tenant(slug=slug) is None


def test_an_owner_does_not_assign_pools(gateway: Gateway) -> None:
    olga = make_company("bream", ACME).people[Role.OWNER]

    with pytest.raises(Forbidden):
        assign_pools(actor=olga.actor, pools=["demo-fast"], reason="", now=timezone.now())
