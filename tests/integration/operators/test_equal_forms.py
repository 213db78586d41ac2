"""Operators manage tenants in three forms: page, command and platform API. All three do the same,
and refuse it with the same sentence."""

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
from tests.fixtures.companies import ACME, Company, make_company
from tests.integration.console.test_platform_tenants import ask, make_operator_key
from tests.integration.operators.browsers import Browser, with_recent_step_up

REASON = "Ticket 4712"


class Form(Protocol):
    """A form of the same operations. Each method returns the refusal; "": done."""

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
        return "" if response.status_code == 201 else _read(response)

    def rename(self, company: Company, name: str, reason: str = REASON) -> str:
        return self._change(company, "name", name=name, reason=reason)

    def set_status(self, company: Company, status: str, reason: str = REASON) -> str:
        slug = company.slug
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
        return "" if response.status_code == 201 else _read(response)

    def _change(self, company: Company, setting: str, **form: str) -> str:
        self.browser.open_tenant(company)
        response = self.browser.change(company, setting, **form)
        return "" if response.status_code == 302 else _read(response)


def _read(response: Any) -> str:
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
        return self._ask("POST", "", body)

    def rename(self, company: Company, name: str, reason: str = REASON) -> str:
        return self._ask("PATCH", f"/{company.slug}", {"name": name, "reason": reason})

    def set_status(self, company: Company, status: str, reason: str = REASON) -> str:
        return self._ask("PATCH", f"/{company.slug}", {"status": status, "reason": reason})

    def close(self, company: Company, grace_days: int) -> str:
        body = {"status": "closing", "grace_days": grace_days, "reason": REASON}
        return self._ask("PATCH", f"/{company.slug}", body)

    def set_trial(self, company: Company, day: str) -> str:
        return self._ask("PATCH", f"/{company.slug}", {"trial_ends_on": day, "reason": REASON})

    def appoint(self, company: Company, email: str, reason: str = REASON) -> str:
        return self._ask("POST", f"/{company.slug}/owners", {"email": email, "reason": reason})

    def invite(self, company: Company, email: str) -> str:
        return self._ask("POST", f"/{company.slug}/owner-invitation", {"owner_email": email})

    def _ask(self, method: str, path: str, body: dict[str, Any]) -> str:
        response = ask(self.key, method, path, body)
        return "" if response.status_code < 400 else str(response.json()["detail"])


FORMS = {"page": Page, "command": Command, "api": Api}


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> Form:
    form: Form = FORMS[request.param]()
    return form


@pytest.fixture
def acme() -> Company:
    return make_company("acme", ACME)


def row_of(company: Company) -> Tenant:
    return Tenant.objects.get(id=company.tenant_id)


def test_each_form_can_do_everything(acme: Company, form: Form) -> None:
    slug = f"initech-{secrets.token_hex(4)}"
    assert form.create(slug) == ""
    assert Tenant.objects.get(slug=slug).name == "Initech"

    steps: list[tuple[str, str]] = []
    assert form.rename(acme, "Acme AG") == ""
    for status in ("suspended", "active", "closing", "suspended", "closing", "closed"):
        steps.append((form.set_status(acme, status), row_of(acme).status))
        if status == "active":
            day = (timezone.now() + timedelta(days=9)).date()
            assert form.set_trial(acme, day.isoformat()) == ""
            assert form.appoint(acme, acme.administrator.email) == ""
            assert form.invite(acme, f"o{secrets.token_hex(4)}@acme.example") == ""
            assert row_of(acme).trial_ends_on == day

    assert steps == [
        ("", status)
        for status in ("suspended", "active", "closing", "suspended", "closing", "closed")
    ]
    assert row_of(acme).name == "Acme AG"
    owners = [row for row in list_members(tenant_id=acme.tenant_id) if row.role is Role.OWNER]
    assert acme.administrator.email in {row.email for row in owners}


Attempt = Callable[[Form, Company], str]
REFUSALS: dict[str, tuple[Attempt, str]] = {
    "a taken slug": (
        lambda form, acme: form.create(acme.slug),
        "The tenant {slug} already exists.",
    ),
    "a reserved slug": (
        lambda form, _: form.create("admin"),
        "The slug admin is reserved. Choose another.",
    ),
    "a slug of 64 characters": (
        lambda form, _: form.create("x" * 64),
        "Enter 1 to 63 lower-case letters",
    ),
    "a slug of mixed scripts": (
        lambda form, _: form.create("\u0430cme", owner_email="o@x.example"),
        "Use only the letters a to z. The slug contains",
    ),
    "a name of two lines": (
        lambda form, _: form.create(f"x-{secrets.token_hex(4)}", name="A\nB"),
        "Enter 1 to 120 characters",
    ),
    "an unknown plan": (
        lambda form, _: form.create(f"x-{secrets.token_hex(4)}", plan="gold"),
        "The plan gold does not exist.",
    ),
    "no address": (
        lambda form, _: form.create(f"x-{secrets.token_hex(4)}", owner_email="olga"),
        "This is not a valid e-mail address.",
    ),
    "an empty name": (lambda form, acme: form.rename(acme, " "), "Enter 1 to 120 characters"),
    "a rename without a reason": (
        lambda form, acme: form.rename(acme, "Acme AG", reason=" "),
        "Enter a reason. The tenant's auditors can read it.",
    ),
    "a suspension without a reason": (
        lambda form, acme: form.set_status(acme, "suspended", reason=""),
        "Enter a reason. The tenant's auditors can read it.",
    ),
    "an owner without a reason": (
        lambda form, acme: form.appoint(acme, acme.administrator.email, reason=" "),
        "Enter a reason. The tenant's auditors can read it.",
    ),
    "closing at once": (
        lambda form, acme: form.set_status(acme, "closed"),
        "{slug} is active and cannot become closed.",
    ),
    "a grace period of a year and a day": (
        lambda form, acme: form.close(acme, 366),
        "Enter 1 to 365 days.",
    ),
    "a trial that is over": (
        lambda form, acme: form.set_trial(acme, "2026-01-01"),
        "Choose a day after today (UTC).",
    ),
    "a stranger as owner": (
        lambda form, acme: form.appoint(acme, "eve@elsewhere.example"),
        "No member of this tenant has the address eve@elsewhere.example.",
    ),
    "an owner twice": (
        lambda form, acme: form.appoint(acme, acme.people[Role.OWNER].email),
        "is already an owner.",
    ),
    "an invitation without an address": (
        lambda form, acme: form.invite(acme, "olga"),
        "This is not a valid e-mail address.",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_each_form_refuses_with_the_same_sentence(acme: Company, form: Form, name: str) -> None:
    attempt, sentence = REFUSALS[name]
    before = row_of(acme)

    refusal = attempt(form, acme)

    assert sentence.format(slug=acme.slug) in refusal
    after = row_of(acme)
    assert (after.name, after.status, after.closes_at) == (
        before.name,
        before.status,
        before.closes_at,
    )


def test_a_closed_tenant_stays_closed(acme: Company, form: Form) -> None:
    form.set_status(acme, "closing")
    form.set_status(acme, "closed")

    refusal = form.set_status(acme, "active")

    assert f"{acme.slug} is closed and cannot become active." in refusal
    assert row_of(acme).status == "closed"
