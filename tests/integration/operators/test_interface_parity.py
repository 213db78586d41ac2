"""Operators manage tenants by page, by command and by platform API.

All three interfaces can do the same, and refuse an invalid request with the same sentence.
"""

import html
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from io import StringIO
from typing import Any, Protocol

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from tenants.base.permissions import Role
from tenants.models import Tenant
from tenants.security.authorization.directory import list_members
from tests.fixtures.companies import ACME_PEOPLE, Company, make_company
from tests.integration.console.test_platform_tenants import make_operator_key, send_request
from tests.integration.operators.browsers import Browser, with_recent_step_up

REASON = "Ticket 4712"


class Interface(Protocol):
    """The operations that each interface offers.

    An operation returns "" if it has succeeded. If it was refused, it returns a text with the error
    message.
    """

    def create(self, slug: str, **fields: str) -> str: ...

    def rename(self, company: Company, name: str, reason: str = REASON) -> str: ...

    def set_status(self, company: Company, status: str, reason: str = REASON) -> str: ...

    def close(self, company: Company, grace_days: int) -> str: ...

    def set_trial(self, company: Company, day: str) -> str: ...

    def appoint(self, company: Company, email: str, reason: str = REASON) -> str: ...

    def invite(self, company: Company, email: str) -> str: ...


@dataclass
class Page:
    browser: Browser = field(default_factory=with_recent_step_up)

    def create(self, slug: str, **fields: str) -> str:
        form = {"slug": slug, "name": "Initech", "owner_email": f"olga@{slug}.example"} | fields
        response = self.browser.client.post("/operators/tenants/new", form)
        return "" if response.status_code == 201 else _read_page(response)

    def rename(self, company: Company, name: str, reason: str = REASON) -> str:
        return self._change(company, "name", name=name, reason=reason)

    def set_status(self, company: Company, status: str, reason: str = REASON) -> str:
        slug = company.slug  # the confirmation, if the status is `closed`
        return self._change(company, "status", status=status, slug=slug, reason=reason)

    def close(self, company: Company, grace_days: int) -> str:
        return self._change(company, "status", status="closing", grace_days=str(grace_days))

    def set_trial(self, company: Company, day: str) -> str:
        return self._change(company, "trial", trial_ends_on=day)

    def appoint(self, company: Company, email: str, reason: str = REASON) -> str:
        return self._change(company, "owner", email=email, reason=reason)

    def invite(self, company: Company, email: str) -> str:
        self.browser.open_tenant(company)
        response = self.browser.invite_owner(company, email)
        return "" if response.status_code == 201 else _read_page(response)

    def _change(self, company: Company, setting: str, **form: str) -> str:
        self.browser.open_tenant(company)
        response = self.browser.change(company, setting, **form)
        return "" if response.status_code == 302 else _read_page(response)


def _read_page(response: Any) -> str:
    return html.unescape(response.content.decode())


class Command:
    def create(self, slug: str, **fields: str) -> str:
        values = {"name": "Initech", "owner_email": f"olga@{slug}.example", "plan": ""} | fields
        plan = ("--plan", values["plan"]) if values["plan"] else ()
        return self._run(
            "create", slug, "--name", values["name"], "--owner", values["owner_email"], *plan
        )

    def rename(self, company: Company, name: str, reason: str = REASON) -> str:
        return self._run("rename", company.slug, name, "--reason", reason)

    def set_status(self, company: Company, status: str, reason: str = REASON) -> str:
        names = {"suspended": "suspend", "active": "resume", "closing": "close"}
        if status == "closed":
            confirmed = ("--confirm", company.slug)
            return self._run("close-now", company.slug, *confirmed, "--reason", reason)
        return self._run(names[status], company.slug, "--reason", reason)

    def close(self, company: Company, grace_days: int) -> str:
        days = ("--grace-days", str(grace_days))
        return self._run("close", company.slug, *days, "--reason", REASON)

    def set_trial(self, company: Company, day: str) -> str:
        return self._run("trial", company.slug, day, "--reason", REASON)

    def appoint(self, company: Company, email: str, reason: str = REASON) -> str:
        return self._run("appoint-owner", company.slug, email, "--reason", reason)

    def invite(self, company: Company, email: str) -> str:
        return self._run("invite-owner", company.slug, email)

    def _run(self, *arguments: str) -> str:
        try:
            call_command("tenant", *arguments, stdout=StringIO())
        except CommandError as error:
            return str(error)
        return ""


@dataclass
class Api:
    key: str = field(default_factory=make_operator_key)

    def create(self, slug: str, **fields: str) -> str:
        body = {"slug": slug, "name": "Initech", "owner_email": f"olga@{slug}.example"} | fields
        return self._request("POST", "", body)

    def rename(self, company: Company, name: str, reason: str = REASON) -> str:
        return self._request("PATCH", f"/{company.slug}", {"name": name, "reason": reason})

    def set_status(self, company: Company, status: str, reason: str = REASON) -> str:
        return self._request("PATCH", f"/{company.slug}", {"status": status, "reason": reason})

    def close(self, company: Company, grace_days: int) -> str:
        body = {"status": "closing", "grace_days": grace_days, "reason": REASON}
        return self._request("PATCH", f"/{company.slug}", body)

    def set_trial(self, company: Company, day: str) -> str:
        return self._request("PATCH", f"/{company.slug}", {"trial_ends_on": day, "reason": REASON})

    def appoint(self, company: Company, email: str, reason: str = REASON) -> str:
        return self._request("POST", f"/{company.slug}/owners", {"email": email, "reason": reason})

    def invite(self, company: Company, email: str) -> str:
        return self._request("POST", f"/{company.slug}/owner-invitation", {"owner_email": email})

    def _request(self, method: str, path: str, body: dict[str, Any]) -> str:
        response = send_request(self.key, method, path, body)
        return "" if response.status_code < 400 else str(response.json()["detail"])


INTERFACES = {"page": Page, "command": Command, "api": Api}


@pytest.fixture(params=INTERFACES)
def interface(request: pytest.FixtureRequest) -> Interface:
    interface: Interface = INTERFACES[request.param]()
    return interface


@pytest.fixture
def acme() -> Company:
    return make_company("acme", ACME_PEOPLE)


def read_tenant(company: Company) -> Tenant:
    return Tenant.objects.get(id=company.tenant_id)


def list_owners(company: Company) -> set[str]:
    """Return the e-mail addresses of the owners."""
    members = list_members(tenant_id=company.tenant_id)
    return {member.email for member in members if member.role is Role.OWNER}


def read_state(company: Company) -> tuple[object, ...]:
    """Return what the operations of an interface can change, without invitations."""
    tenant = read_tenant(company)
    owners = list_owners(company)
    return tenant.name, tenant.status, tenant.closes_at, tenant.trial_ends_on, owners


def test_each_interface_offers_all_operations(acme: Company, interface: Interface) -> None:
    slug = f"initech-{secrets.token_hex(4)}"
    assert interface.create(slug) == ""
    assert Tenant.objects.get(slug=slug).name == "Initech"

    steps: list[tuple[str, str]] = []
    assert interface.rename(acme, "Acme AG") == ""
    statuses = ("suspended", "active", "closing", "suspended", "closing", "closed")
    for status in statuses:
        steps.append((interface.set_status(acme, status), read_tenant(acme).status))
        if status == "active":
            day = (timezone.now() + timedelta(days=9)).date()
            assert interface.set_trial(acme, day.isoformat()) == ""
            assert interface.appoint(acme, acme.administrator.email) == ""
            assert interface.invite(acme, f"o{secrets.token_hex(4)}@acme.example") == ""
            assert read_tenant(acme).trial_ends_on == day

    assert steps == [("", status) for status in statuses]  # no refusals
    assert read_tenant(acme).name == "Acme AG"
    assert acme.administrator.email in list_owners(acme)


Attempt = Callable[[Interface, Company], str]
REFUSALS: dict[str, tuple[Attempt, str]] = {
    "a taken slug": (
        lambda interface, acme: interface.create(acme.slug),
        "The tenant {slug} already exists.",
    ),
    "a reserved slug": (
        lambda interface, _: interface.create("admin"),
        "The slug admin is reserved. Choose another.",
    ),
    "a slug of 64 characters": (
        lambda interface, _: interface.create("x" * 64),
        "Enter 1 to 63 lower-case letters",
    ),
    "a slug of mixed scripts": (
        # The first letter is Cyrillic.
        lambda interface, _: interface.create("\u0430cme", owner_email="o@x.example"),
        "Use only the letters a to z. The slug contains",
    ),
    "a name of two lines": (
        lambda interface, _: interface.create(f"x-{secrets.token_hex(4)}", name="A\nB"),
        "Enter 1 to 120 characters",
    ),
    "an unknown plan": (
        lambda interface, _: interface.create(f"x-{secrets.token_hex(4)}", plan="gold"),
        "The plan gold does not exist.",
    ),
    "an invalid address of the owner": (
        lambda interface, _: interface.create(f"x-{secrets.token_hex(4)}", owner_email="olga"),
        "This is not a valid e-mail address.",
    ),
    "an empty name": (
        lambda interface, acme: interface.rename(acme, " "),
        "Enter 1 to 120 characters",
    ),
    "a rename without a reason": (
        lambda interface, acme: interface.rename(acme, "Acme AG", reason=" "),
        "Enter a reason. The tenant's owners, administrators and auditors can read it.",
    ),
    "a suspension without a reason": (
        lambda interface, acme: interface.set_status(acme, "suspended", reason=""),
        "Enter a reason. The tenant's owners, administrators and auditors can read it.",
    ),
    "an owner without a reason": (
        lambda interface, acme: interface.appoint(acme, acme.administrator.email, reason=" "),
        "Enter a reason. The tenant's owners, administrators and auditors can read it.",
    ),
    "closing without a grace period": (
        lambda interface, acme: interface.set_status(acme, "closed"),
        "{slug} is active and cannot become closed.",
    ),
    "a grace period of a year and a day": (
        lambda interface, acme: interface.close(acme, 366),
        "Enter 1 to 365 days.",
    ),
    "a trial that ends in the past": (
        lambda interface, acme: interface.set_trial(acme, "2026-01-01"),
        "Choose a day after today (UTC).",
    ),
    "a stranger as owner": (
        lambda interface, acme: interface.appoint(acme, "eve@elsewhere.example"),
        "No member of this tenant has the address eve@elsewhere.example.",
    ),
    "a new owner who is already one": (
        lambda interface, acme: interface.appoint(acme, acme.people[Role.OWNER].email),
        "is already an owner.",
    ),
    "an invitation to an invalid address": (
        lambda interface, acme: interface.invite(acme, "olga"),
        "This is not a valid e-mail address.",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_each_interface_refuses_with_the_same_sentence(
    acme: Company, interface: Interface, name: str
) -> None:
    attempt, sentence = REFUSALS[name]
    before = read_state(acme)

    refusal = attempt(interface, acme)

    assert sentence.format(slug=acme.slug) in refusal
    assert read_state(acme) == before


def test_a_closed_tenant_stays_closed(acme: Company, interface: Interface) -> None:
    interface.set_status(acme, "closing")
    interface.set_status(acme, "closed")

    refusal = interface.set_status(acme, "active")

    assert f"{acme.slug} is closed and cannot become active." in refusal
    assert read_tenant(acme).status == "closed"
