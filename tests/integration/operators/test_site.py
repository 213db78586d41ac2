"""The operators' site: its security headers, static files, and directory of tenants."""

import re

import pytest
from django.test import Client
from django.utils import timezone

from console.layout.preferences import ZONE_COOKIE
from console.web.static_files import list_static_files
from tenants.models import Tenant
from tests.fixtures.companies import ACME_PEOPLE, GLOBEX_PEOPLE, Company, make_company
from tests.integration.operators.browsers import signed_in


@pytest.fixture
def acme() -> Company:
    return make_company("acme", ACME_PEOPLE)


@pytest.fixture
def globex() -> Company:
    return make_company("globex", GLOBEX_PEOPLE)


def test_the_operators_site_registers_no_model() -> None:
    """Django's admin pages of a model would show rows without a reason and an audit entry."""
    from django.contrib import admin

    from console.operator_admin.site import operator_site

    assert operator_site._registry == {}
    assert admin.site._registry == {}


def test_the_operator_pages_have_a_strict_content_security_policy(acme: Company) -> None:
    browser = signed_in()
    operator_page, console_page = browser.open_tenant(acme), Client().get("/sign-in")

    operator_policy = operator_page["Content-Security-Policy"]
    console_policy = console_page["Content-Security-Policy"]
    text = operator_page.content.decode()

    assert operator_policy == f"{console_policy}; font-src 'self'"
    assert "unsafe" not in operator_policy
    for inline in ("<style", "style=", "<script>", "onclick", "x-data"):
        assert inline not in text
    assert operator_page["Cache-Control"] == console_page["Cache-Control"] == "no-store"


def test_every_static_file_that_a_page_links_to_exists(acme: Company) -> None:
    text = signed_in().client.get("/operators/").content.decode()

    linked = set(re.findall(r'="((?:/operators)?/assets/[^"#]+)', text))

    names = {path.rpartition("/")[2] for path in linked}
    assert {"mark.svg", "operators.css", "console.css", "console.js"} <= names
    assert linked <= list_static_files().keys()


def test_the_tenant_directory_is_exported_as_csv(acme: Company, globex: Company) -> None:
    answer = signed_in().client.get("/operators/tenants", {"search": acme.slug, "as": "csv"})

    header, *rows = answer.content.decode().splitlines()
    assert header == "tenant,name,status,region,created_at,id"
    assert [row.split(",")[0] for row in rows] == [acme.slug]


def test_the_tenant_directory_is_searchable_and_escapes_names(acme: Company) -> None:
    Tenant.objects.filter(id=acme.tenant_id).update(name="<script>alert(1)</script>")
    browser = signed_in()

    text = browser.client.get("/operators/tenants", {"search": acme.slug}).content.decode()
    invalid = [
        browser.client.get("/operators/tenants", query)
        for query in ({"search": "\0"}, {"cursor": "x"})
    ]

    assert acme.slug in text
    assert "&lt;script&gt;alert" in text
    assert "<script>alert" not in text
    assert [answer.status_code for answer in invalid] == [400, 400]
    assert all('role="alert"' in answer.content.decode() for answer in invalid)


def test_operators_see_utc_whatever_their_time_zone() -> None:
    browser = signed_in()
    browser.client.cookies[ZONE_COOKIE] = "Asia/Tokyo"

    before = timezone.now()
    page = browser.client.get("/operators/").content.decode()

    match = re.search(r"at (\d\d):\d\d:\d\d UTC", page)
    assert match is not None
    assert int(match[1]) in {before.hour, timezone.now().hour}
