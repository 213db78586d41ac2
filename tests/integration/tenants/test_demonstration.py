"""The demo tenants are created once; a second call does not change them."""

import json
import stat
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth import authenticate
from django.core.management import call_command
from django.utils import timezone

from caret.contracts.api_key import parse_key
from caret.contracts.pricing import BudgetScope
from caret.contracts.snapshot import SNAPSHOTS, decode_snapshot
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.billing_periods import utc_day
from tenants.base.permissions import Role
from tenants.base.redis_connection import connect_to_redis
from tenants.billing.budgets.queries import page_of_budgets
from tenants.billing.plans.queries import read_price_book
from tenants.demo.tenants import DemoTenant
from tenants.identity.api_keys.operations import revoke_key
from tenants.identity.passwords.operations import set_password
from tenants.models import AuditEntry
from tenants.security.authorization.actor import system_actor
from tenants.security.authorization.directory import find_tenant, find_user, list_members


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "state.json"


def run(state: Path) -> list[DemoTenant]:
    output = StringIO()
    call_command("create_demo_tenants", state=state, stdout=output)
    answer: list[DemoTenant] = json.loads(output.getvalue())
    return answer


def test_both_demo_tenants_can_be_used_immediately(state: Path) -> None:
    answer = run(state)

    assert [entry["slug"] for entry in answer] == ["acme", "globex"]
    for entry in answer:
        key = parse_key(entry["api_key"])
        assert key is not None
        for who in ("owner", "admin", "developer"):
            assert authenticate(
                username=entry[f"{who}_email"],  # type: ignore[literal-required]
                password=entry[f"{who}_password"],  # type: ignore[literal-required]
            )
        data = connect_to_redis().hget(SNAPSHOTS, find_tenant(slug=entry["slug"]) or "")
        assert isinstance(data, bytes)
        assert key.lookup_id in {c.lookup_id for c in decode_snapshot(data).credentials}


def test_both_demo_tenants_have_a_plan_and_a_soft_budget(state: Path) -> None:
    run(state)
    run(state)

    for slug in ("acme", "globex"):
        tenant_id = find_tenant(slug=slug)
        assert tenant_id is not None
        page = page_of_budgets(
            actor=system_actor(tenant_id), limit=10, cursor=None, now=timezone.now()
        )
        (budget,) = (each for each in page.rows if each.scope is BudgetScope.TENANT)
        assert not budget.is_hard
        with tenant_scope(tenant_id):
            assert read_price_book(tenant_id).price_on(utc_day(timezone.now())) is not None


def test_the_tenants_are_onboarded_like_customers(state: Path) -> None:
    answer = run(state)

    for entry in answer:
        tenant_id = find_tenant(slug=entry["slug"])
        assert tenant_id is not None
        owners = [each for each in list_members(tenant_id=tenant_id) if each.role is Role.OWNER]
        assert entry["owner_email"] in {owner.email for owner in owners}
        with tenant_scope(tenant_id):
            actions = AuditEntry.objects.order_by("sequence").values_list("action", flat=True)
            assert list(actions[:4]) == [
                "tenant.created",
                "billing.subscribed",
                "invitation.created",
                "member.invitation_accepted",
            ]


def test_a_second_run_gives_the_same_result(state: Path) -> None:
    assert run(state) == run(state)


def test_the_state_file_is_private(state: Path) -> None:
    run(state)

    assert stat.S_IMODE(state.stat().st_mode) == 0o600


def test_only_invalid_credentials_are_replaced(state: Path) -> None:
    acme, globex = run(state)
    key, admin = parse_key(acme["api_key"]), find_user(email=acme["admin_email"])
    tenant_id = find_tenant(slug="acme")
    assert key is not None
    assert admin is not None
    assert tenant_id is not None
    revoke_key(
        actor=system_actor(tenant_id), lookup_id=key.lookup_id, reason="", now=timezone.now()
    )
    set_password(user_id=admin, password="another long password")

    again, globex_again = run(state)

    assert globex_again == globex
    assert again["api_key"] != acme["api_key"]
    assert again["admin_password"] != acme["admin_password"]
    assert again["developer_password"] == acme["developer_password"]


@pytest.mark.parametrize("torn", ["", "{", "[1]", "null"])
def test_a_damaged_state_file_is_written_again(state: Path, torn: str) -> None:
    state.write_text(torn)

    assert len(run(state)) == 2
    assert len(json.loads(state.read_text())) == 2
