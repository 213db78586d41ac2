"""Creation of two tenants and an operator for a demonstration.

`manage.py create_demo_tenants` reads and writes a file (mode 0600) with their secrets. A later run
keeps the secrets of the file that are still valid, and replaces the others.
"""

import json
import os
import secrets
from datetime import datetime
from pathlib import Path
from typing import Final, TypedDict

from django.conf import settings
from django.contrib.auth import authenticate

from caret.contracts.api_key import KeyKind, parse_key
from caret.contracts.policy import Tier
from caret.contracts.pricing import BudgetScope, TierPrices
from caret.foundation.ids import TenantId, UserId
from tenants.base.billing_periods import utc_day
from tenants.base.money import MICROS, Currency
from tenants.base.operator_roles import OperatorRole
from tenants.base.permissions import Role
from tenants.billing.budgets.operations import BudgetTarget, BudgetTerms, create_budget
from tenants.billing.budgets.queries import read_page_of_budgets
from tenants.billing.plans.operations import NewPrice, add_price, create_plan
from tenants.billing.plans.queries import list_plans
from tenants.fleet.operators.accounts import (
    create_operator,
    has_password,
    list_operators,
    reset_operator,
)
from tenants.fleet.snapshots.publisher import publish_snapshot
from tenants.identity.api_keys.operations import create_key
from tenants.identity.api_keys.queries import is_key_active
from tenants.identity.api_keys.validation import KeyRequest
from tenants.identity.invitations.operations import InvitationBearer, accept_invitation
from tenants.identity.members.operations import add_member, create_user
from tenants.identity.passwords.operations import set_password
from tenants.identity.tenant_lifecycle import NewTenant, onboard_tenant
from tenants.security.authorization.actor import Actor, build_system_actor
from tenants.security.authorization.directory import find_tenant, find_user, list_members

OPERATOR: Final = "operator"  # the operator's handle
TENANT_NAMES: Final = {"acme": "Acme Robotics", "globex": "Globex Energy"}  # by slug

PLAN: Final = "demonstration"  # slug of the tenants' plan
SEAT_MONTH_MICROS: Final = 19 * MICROS  # price of a seat for a month
# Approximate prices of hosted models of similar sizes, in micros for a million tokens.
PRICES: Final = {
    Tier.FAST: TierPrices(prompt=150_000, cached_prompt=15_000, generated=600_000),
    Tier.QUALITY: TierPrices(prompt=1_500_000, cached_prompt=150_000, generated=6_000_000),
}
BUDGET_MICROS: Final = 100 * MICROS  # monthly budget of each tenant
_PASSWORD_BYTES: Final = 12  # of randomness


class DemoTenant(TypedDict):
    slug: str
    owner_email: str
    owner_password: str
    admin_email: str
    admin_password: str
    developer_email: str
    developer_password: str
    api_key: str  # the text of a key of the developer


class DemoOperator(TypedDict):
    handle: str
    password: str
    totp_uri: str  # otpauth://..., for an authenticator app


class Demonstration(TypedDict):
    tenants: list[DemoTenant]
    operator: DemoOperator | None  # None: there are no operator pages, or the account is disabled


def ensure_demonstration(*, last_run: Demonstration, now: datetime) -> Demonstration:
    """Create the parts of the demonstration that are missing, and return the credentials.

    The parts are tenants, members, keys and an operator. `last_run` is the state that the last run
    returned. Raises redis.RedisError if a snapshot cannot be published, because a returned key must
    work at once.
    """
    last_values = {entry["slug"]: entry for entry in last_run["tenants"]}
    return {
        "tenants": [
            _ensure_tenant(slug, name, last_values.get(slug), now)
            for slug, name in TENANT_NAMES.items()
        ],
        "operator": _ensure_operator(last_run["operator"], now),
    }


def read_state(path: Path) -> Demonstration:
    """Read the state of the last run. If the file is missing or damaged, return an empty state."""
    try:
        state = json.loads(path.read_text())
        return {"tenants": list(state["tenants"]), "operator": state["operator"]}
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return {"tenants": [], "operator": None}


def write_state(path: Path, state: Demonstration) -> None:
    """Replace the file with the state in one step. Only the process's user can read it."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(state, file, indent=2)
    draft.replace(path)


def _ensure_tenant(
    slug: str, name: str, last_values: DemoTenant | None, now: datetime
) -> DemoTenant:
    owner_email = f"owner@{slug}.example"
    admin_email, developer_email = f"admin@{slug}.example", f"developer@{slug}.example"
    _ensure_plan(now)
    tenant_id = find_tenant(slug=slug) or _create_demo_tenant(slug, name, owner_email, now)
    actor = build_system_actor(tenant_id)
    _ensure_budget(actor, now)
    owner_password = _ensure_member(
        actor, owner_email, Role.OWNER, last_values and last_values.get("owner_password"), now
    )
    admin_password = _ensure_member(
        actor,
        admin_email,
        Role.ADMINISTRATOR,
        last_values and last_values.get("admin_password"),
        now,
    )
    developer_password = _ensure_member(
        actor,
        developer_email,
        Role.DEVELOPER,
        last_values and last_values.get("developer_password"),
        now,
    )
    api_key = _ensure_key(actor, developer_email, last_values and last_values.get("api_key"), now)
    publish_snapshot(tenant_id=tenant_id, now=now)
    return DemoTenant(
        slug=slug,
        owner_email=owner_email,
        owner_password=owner_password,
        admin_email=admin_email,
        admin_password=admin_password,
        developer_email=developer_email,
        developer_password=developer_password,
        api_key=api_key,
    )


def _ensure_operator(last_values: DemoOperator | None, now: datetime) -> DemoOperator | None:
    """Return the credentials of the last run if their password still works.

    Otherwise create the operator or reset its credentials, and return the new ones. None: the
    installation has no operator pages, or the operator is disabled.
    """
    if settings.OPERATORS_PATH is None:
        return None
    operator = next((account for account in list_operators() if account.handle == OPERATOR), None)
    if operator is None:
        credentials = create_operator(
            handle=OPERATOR, name="Operator (demonstration)", role=OperatorRole.ADMIN, now=now
        )
    elif operator.disabled_at is not None:
        return None
    elif last_values and has_password(handle=OPERATOR, password=last_values["password"]):
        return last_values
    else:
        credentials = reset_operator(handle=OPERATOR)
    return DemoOperator(
        handle=OPERATOR, password=credentials.password, totp_uri=credentials.totp_uri
    )


def _create_demo_tenant(slug: str, name: str, owner_email: str, now: datetime) -> TenantId:
    """Create the tenant as an operator does, and let its owner accept the invitation."""
    new = NewTenant(slug=slug, name=name, owner_email=owner_email, plan=PLAN)
    tenant = onboard_tenant(new=new, actor_for=build_system_actor, now=now)
    # _ensure_member replaces this password, which nobody knows.
    owner_id = find_user(email=owner_email) or _create_user(
        owner_email, Role.OWNER, secrets.token_urlsafe(_PASSWORD_BYTES), now
    )
    accept_invitation(
        bearer=InvitationBearer(owner_id, address=None, request_id=""),
        text=tenant.owner_invitation.url.rpartition("/")[2],  # the URL ends with the token
        now=now,
    )
    return tenant.tenant_id


def _ensure_plan(now: datetime) -> None:
    """Create the plan with its prices from today on, if it does not exist."""
    if PLAN not in {plan.slug for plan in list_plans()}:
        create_plan(slug=PLAN, name="Demonstration", currency=Currency.EUR, now=now)
        add_price(plan=PLAN, new=NewPrice(utc_day(now), SEAT_MONTH_MICROS, PRICES), now=now)


def _ensure_budget(actor: Actor, now: datetime) -> None:
    """Give the tenant a soft budget, so that the billing pages show something."""
    if not read_page_of_budgets(actor=actor, limit=1, cursor=None, now=now).rows:
        terms = BudgetTerms(BUDGET_MICROS, is_hard=False)
        create_budget(actor=actor, holder=BudgetTarget(BudgetScope.TENANT), terms=terms, now=now)


def _ensure_member(
    actor: Actor, email: str, role: Role, password: str | None, now: datetime
) -> str:
    """Create the user and the membership if they are missing, and return the user's password.

    `password` is the one of the last run. It is kept if it still works, and replaced otherwise.
    """
    user_id = find_user(email=email)
    if user_id is not None and password and authenticate(username=email, password=password):
        _add_member(actor, user_id, role, now)
        return password
    password = secrets.token_urlsafe(_PASSWORD_BYTES)
    if user_id is None:
        user_id = _create_user(email, role, password, now)
    else:
        set_password(user_id=user_id, password=password)
    _add_member(actor, user_id, role, now)
    return password


def _create_user(email: str, role: Role, password: str, now: datetime) -> UserId:
    name = f"{role.value.title()} (demonstration)"
    return create_user(email=email, name=name, password=password, now=now)


def _add_member(actor: Actor, user_id: UserId, role: Role, now: datetime) -> None:
    if user_id not in {member.user_id for member in list_members(tenant_id=actor.tenant_id)}:
        add_member(actor=actor, user_id=user_id, role=role, now=now)


def _ensure_key(actor: Actor, owner_email: str, text: str | None, now: datetime) -> str:
    """Return `text`, the key of the last run, if it is still usable; otherwise create a key."""
    if text and _is_key_usable(actor.tenant_id, text, now):
        return text
    owner_id = find_user(email=owner_email)
    new = KeyRequest(
        kind=KeyKind.DEVELOPER, owner_id=owner_id, name="Demonstration", expires_at=None
    )
    return create_key(actor=actor, new=new, now=now).text


def _is_key_usable(tenant_id: TenantId, text: str, now: datetime) -> bool:
    key = parse_key(text)
    return key is not None and is_key_active(tenant_id=tenant_id, key=key, now=now)
