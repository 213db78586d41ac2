"""An operator who creates a tenant can assign pools to it that a real gateway reports."""

import secrets
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from tenants.fleet.pools.assignments import KnownPool, list_assignments, read_known_pools
from tenants.security.authorization.directory import find_tenant
from tests.integration.operators.browsers import with_recent_step_up
from tests.integration.operators.gateways import Gateway


@pytest.fixture
def slug() -> str:
    return f"bream-{secrets.token_hex(4)}"


def create(slug: str, *pools: str) -> None:
    names = ("--name", "Bream", "--owner", f"olga@{slug}.example")
    pool_arguments = [argument for pool in pools for argument in ("--pool", pool)]
    call_command("tenant", "create", slug, *names, *pool_arguments, stdout=StringIO())


def assigned_pools(slug: str) -> list[tuple[str, str]]:
    tenant_id = find_tenant(slug=slug)
    assert tenant_id is not None
    return [(row.tier, row.pool) for row in list_assignments(tenant_id=tenant_id)]


def pool_of(tier: str) -> KnownPool:
    return next(pool for pool in read_known_pools().values() if pool.tier == tier)


def test_a_new_tenant_gets_its_pools(gateway: Gateway, slug: str) -> None:
    fast, quality = pool_of("fast"), pool_of("quality")

    create(slug, fast.name, quality.name)

    assert assigned_pools(slug) == [("fast", fast.name), ("quality", quality.name)]


def test_the_operators_form_offers_known_pools_and_refuses_others(
    gateway: Gateway, slug: str
) -> None:
    browser, fast = with_recent_step_up(), pool_of("fast")
    form = {"slug": slug, "name": "Bream", "owner_email": f"olga@{slug}.example"}

    page = browser.client.get("/operators/tenants/new").content.decode()
    # The form has a field for each tier; "" is the choice of no pool.
    unknown_pool = browser.client.post("/operators/tenants/new", {**form, "pools": ["gold", ""]})
    created = browser.client.post("/operators/tenants/new", {**form, "pools": [fast.name, ""]})

    assert f"<option>{fast.name}</option>" in page
    assert (unknown_pool.status_code, created.status_code) == (400, 201)
    assert "Choose one of these pools" in unknown_pool.content.decode()
    assert assigned_pools(slug) == [("fast", fast.name)]


def test_an_unknown_pool_is_explained_and_nothing_is_created(gateway: Gateway, slug: str) -> None:
    with pytest.raises(CommandError, match="Choose one of these pools: demo-fast, "):
        create(slug, "gold")

    assert find_tenant(slug=slug) is None


def test_a_tenant_has_at_most_one_pool_of_a_tier(
    gateway: Gateway, slug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = pool_of("fast")
    known_pools = {"one": fast, "two": fast}
    monkeypatch.setattr("tenants.fleet.pools.assignments.read_known_pools", lambda: known_pools)

    with pytest.raises(CommandError, match="at most one pool of the tier fast"):
        create(slug, "one", "two")

    assert find_tenant(slug=slug) is None
