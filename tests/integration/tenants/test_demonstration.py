"""The command `create_demo_tenants` makes two tenants and an operator. A second run keeps them."""

import json
import stat
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth import authenticate
from django.core.management import call_command
from django.utils import timezone
from pytest_django import Settings

from caret.contracts.api_key import parse_key
from caret.contracts.pricing import BudgetScope
from caret.contracts.snapshot import SNAPSHOTS, decode_snapshot
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.billing_periods import utc_day
from tenants.base.permissions import Role
from tenants.base.redis_connection import connect_to_redis
from tenants.billing.budgets.queries import read_page_of_budgets
from tenants.billing.plans.queries import read_price_book
from tenants.demo.tenants import Demonstration, DemoOperator, DemoTenant
from tenants.fleet.operators import accounts
from tenants.identity.api_keys.operations import revoke_key
from tenants.identity.passwords.operations import set_password
from tenants.models import AuditEntry
from tenants.security.authorization.actor import build_system_actor
from tenants.security.authorization.directory import find_tenant, find_user, list_members
from tests.integration.operators.browsers import Account


@pytest.fixture(scope="module")
def state_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file that contains the tenants and credentials of the last run."""
    return tmp_path_factory.mktemp("demo") / "state.json"


def run_command(state_file: Path) -> Demonstration:
    output = StringIO()
    call_command("create_demo_tenants", state=state_file, stdout=output)
    demonstration: Demonstration = json.loads(output.getvalue())
    return demonstration


def create_demo_tenants(state_file: Path) -> list[DemoTenant]:
    return run_command(state_file)["tenants"]


def create_demo_operator(state_file: Path) -> DemoOperator:
    operator = run_command(state_file)["operator"]
    assert operator is not None
    return operator


def test_both_demo_tenants_can_be_used_immediately(state_file: Path) -> None:
    demo_tenants = create_demo_tenants(state_file)

    assert [tenant["slug"] for tenant in demo_tenants] == ["acme", "globex"]
    for tenant in demo_tenants:
        key = parse_key(tenant["api_key"])
        assert key is not None
        for role in ("owner", "admin", "developer"):
            assert authenticate(
                username=tenant[f"{role}_email"],  # type: ignore[literal-required]
                password=tenant[f"{role}_password"],  # type: ignore[literal-required]
            )
        data = connect_to_redis().hget(SNAPSHOTS, find_tenant(slug=tenant["slug"]) or "")
        assert isinstance(data, bytes)
        assert key.lookup_id in {c.lookup_id for c in decode_snapshot(data).credentials}


def test_both_demo_tenants_have_a_plan_and_a_soft_budget(state_file: Path) -> None:
    create_demo_tenants(state_file)
    create_demo_tenants(state_file)  # must not create a second budget

    for slug in ("acme", "globex"):
        tenant_id = find_tenant(slug=slug)
        assert tenant_id is not None
        page = read_page_of_budgets(
            actor=build_system_actor(tenant_id), limit=10, cursor=None, now=timezone.now()
        )
        (budget,) = (budget for budget in page.rows if budget.scope is BudgetScope.TENANT)
        assert not budget.is_hard
        with tenant_scope(tenant_id):
            assert read_price_book(tenant_id).price_on(utc_day(timezone.now())) is not None


def test_the_tenants_are_onboarded_like_customers(state_file: Path) -> None:
    demo_tenants = create_demo_tenants(state_file)

    for tenant in demo_tenants:
        tenant_id = find_tenant(slug=tenant["slug"])
        assert tenant_id is not None
        owners = [
            member for member in list_members(tenant_id=tenant_id) if member.role is Role.OWNER
        ]
        assert tenant["owner_email"] in {owner.email for owner in owners}
        with tenant_scope(tenant_id):
            actions = AuditEntry.objects.order_by("sequence").values_list("action", flat=True)
            assert list(actions[:4]) == [
                "tenant.created",
                "billing.subscribed",
                "invitation.created",
                "member.invitation_accepted",
            ]


def test_a_second_run_gives_the_same_result(state_file: Path) -> None:
    assert create_demo_tenants(state_file) == create_demo_tenants(state_file)


def test_the_state_file_is_private(state_file: Path) -> None:
    create_demo_tenants(state_file)

    assert stat.S_IMODE(state_file.stat().st_mode) == 0o600


def test_only_invalid_credentials_are_replaced(state_file: Path) -> None:
    acme, globex = create_demo_tenants(state_file)
    key = parse_key(acme["api_key"])
    admin_id = find_user(email=acme["admin_email"])
    tenant_id = find_tenant(slug="acme")
    assert key is not None
    assert admin_id is not None
    assert tenant_id is not None
    revoke_key(
        actor=build_system_actor(tenant_id), lookup_id=key.lookup_id, reason="", now=timezone.now()
    )
    set_password(user_id=admin_id, password="another long password")

    renewed_acme, globex_again = create_demo_tenants(state_file)

    assert globex_again == globex
    assert renewed_acme["api_key"] != acme["api_key"]
    assert renewed_acme["admin_password"] != acme["admin_password"]
    assert renewed_acme["developer_password"] == acme["developer_password"]


@pytest.mark.parametrize("damaged_text", ["", "{", "[1]", "null"])
def test_a_damaged_state_file_is_written_again(state_file: Path, damaged_text: str) -> None:
    state_file.write_text(damaged_text)

    assert len(create_demo_tenants(state_file)) == 2
    assert len(json.loads(state_file.read_text())["tenants"]) == 2


def test_the_demo_operator_can_sign_in(state_file: Path) -> None:
    operator = create_demo_operator(state_file)
    account = Account(
        operator["handle"], accounts.Credentials(operator["password"], operator["totp_uri"])
    )

    assert accounts.authenticate_operator(**account.form(), now=timezone.now()) is not None


def test_a_changed_password_of_the_demo_operator_is_replaced(state_file: Path) -> None:
    operator = create_demo_operator(state_file)
    accounts.reset_operator(handle=operator["handle"])

    renewed = create_demo_operator(state_file)

    assert renewed["password"] != operator["password"]
    assert accounts.has_password(handle=renewed["handle"], password=renewed["password"])


def test_a_disabled_demo_operator_stays_disabled(state_file: Path) -> None:
    operator = create_demo_operator(state_file)
    accounts.disable_operator(handle=operator["handle"], now=timezone.now())

    disabled = run_command(state_file)["operator"]

    accounts.reset_operator(handle=operator["handle"])  # enables the account for other tests
    assert disabled is None


def test_without_operator_pages_there_is_no_demo_operator(
    state_file: Path, settings: Settings
) -> None:
    settings.OPERATORS_PATH = None

    assert run_command(state_file)["operator"] is None
