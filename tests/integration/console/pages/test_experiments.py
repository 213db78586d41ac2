"""The page of experiments compares the variants of each experiment, with confidence intervals."""

import csv
import io
import re

import pytest
from django.test import Client

from tenants.base.permissions import Role
from tests.fixtures.companies import ACME_PEOPLE, GLOBEX_PEOPLE, Company, make_company
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.queries import few_queries
from tests.integration.console.pages.usage_rows import add_requests, make_colleagues, roll_up

pytestmark = pytest.mark.usefixtures("stopped_clock")  # so that no hour ends during a test


@pytest.fixture
def company() -> Company:
    return make_company("initech", ACME_PEOPLE)


def record_experiment(company: Company, *, num_users: int) -> None:
    """Record two suggestions for each user. Users of `control` accept one, users of `wide` both."""
    for variant, accepted in (("window/control", 1), ("window/wide", 2)):
        for person in make_colleagues(company, num_users):
            add_requests(company, person, num=2, accepted=accepted, variant=variant)
    roll_up(company)


@pytest.mark.parametrize("role", list(Role))
def test_every_role_but_billing_sees_experiments(
    company: Company, sign_in: SignIn, role: Role
) -> None:
    client = sign_in(company.people[role])
    is_open = role is not Role.BILLING

    assert client.get("/experiments").status_code == (200 if is_open else 403)
    assert ('href="/experiments"' in client.get("/usage").content.decode()) == is_open


def test_anonymous_visitors_are_redirected_to_sign_in() -> None:
    assert Client().get("/experiments")["Location"] == "/sign-in?next=/experiments"


def test_variants_are_compared_with_confidence_intervals(company: Company, sign_in: SignIn) -> None:
    record_experiment(company, num_users=5)

    client = sign_in(company.administrator)

    with few_queries():
        page = client.get("/experiments").content.decode()

    table = page[page.index("<h2>window</h2>") :]
    assert re.findall(r'<a class="name"[^>]*>([^<]+)<', table) == ["control", "wide"]
    # Wilson's 95% interval of 5 accepted among 10 shown.
    assert '<span class="name">50.0%</span> <span class="soft interval">23.7% to 76.3%' in page
    # Ten suggestions are too few (MIN_SHOWN) to call a variant better or worse.
    assert "not enough data" in page
    assert "state-good" not in page


def test_a_variant_with_few_users_is_hidden(company: Company, sign_in: SignIn) -> None:
    record_experiment(company, num_users=4)  # one fewer than the default minimum of a group

    page = sign_in(company.administrator).get("/experiments").content.decode()

    assert page.count("hidden to protect small groups") == 2


def test_the_csv_file_has_the_figures_of_the_page(company: Company, sign_in: SignIn) -> None:
    record_experiment(company, num_users=5)

    answer = sign_in(company.administrator).get("/experiments", {"as": "csv"})

    control, wide, *_notes = csv.DictReader(io.StringIO(answer.content.decode()))
    assert (control["variant"], control["control"], control["acceptance"]) == (
        "control",
        "true",
        "0.5",
    )
    assert wide["acceptance_difference"] == "0.5"


def test_another_tenant_does_not_see_the_experiments(company: Company, sign_in: SignIn) -> None:
    record_experiment(company, num_users=5)
    client = sign_in(make_company("globex", GLOBEX_PEOPLE).administrator)

    assert "No experiments for these requests" in client.get("/experiments").content.decode()
