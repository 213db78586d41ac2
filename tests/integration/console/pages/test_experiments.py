"""Experiments: variants side by side, with confidence intervals."""

import csv
import io

import pytest
from django.test import Client

from tenants.base.permissions import Role
from tests.fixtures.companies import ACME, GLOBEX, Company, make_company
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.queries import few_queries
from tests.integration.console.pages.usage_rows import colleagues, count, use


@pytest.fixture
def company() -> Company:
    return make_company("initech", ACME)


def tried(company: Company, *, num: int) -> None:
    for variant, accepted in (("window/control", 1), ("window/wide", 2)):
        for person in colleagues(company, num):
            use(company, person, num=2, accepted=accepted, variant=variant)
    count(company)


@pytest.mark.parametrize("role", list(Role))
def test_who_may_see_quality_sees_experiments(
    company: Company, sign_in: SignIn, role: Role
) -> None:
    client = sign_in(company.people[role])
    is_open = role is not Role.BILLING

    assert client.get("/experiments").status_code == (200 if is_open else 403)
    assert ('href="/experiments"' in client.get("/usage").content.decode()) == is_open


def test_a_stranger_is_sent_to_the_sign_in() -> None:
    assert Client().get("/experiments")["Location"] == "/sign-in?next=/experiments"


def test_variants_stand_side_by_side_with_their_intervals(
    company: Company, sign_in: SignIn
) -> None:
    tried(company, num=5)

    client = sign_in(company.administrator)

    with few_queries():
        page = client.get("/experiments").content.decode()

    assert "<h2>window</h2>" in page
    assert page.index("control") < page.index("wide")
    assert '<span class="name">50.0%</span> <span class="soft interval">23.7% to 76.3%' in page
    assert "not enough data" in page
    assert "better" not in page


def test_a_variant_of_few_people_is_not_shown(company: Company, sign_in: SignIn) -> None:
    tried(company, num=4)

    page = sign_in(company.administrator).get("/experiments").content.decode()

    assert page.count("hidden to protect small groups") == 2


def test_a_file_has_what_the_page_shows(company: Company, sign_in: SignIn) -> None:
    tried(company, num=5)

    answer = sign_in(company.administrator).get("/experiments", {"format": "csv"})

    control, wide, *_notes = csv.DictReader(io.StringIO(answer.content.decode()))
    assert (control["variant"], control["control"], control["acceptance"]) == (
        "control",
        "true",
        "0.5",
    )
    assert wide["acceptance_difference"] == "0.5"


def test_a_neighbour_sees_none_of_it(company: Company, sign_in: SignIn) -> None:
    tried(company, num=5)
    client = sign_in(make_company("globex", GLOBEX).administrator)

    assert "No experiments for these requests" in client.get("/experiments").content.decode()
