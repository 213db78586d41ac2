"""The choices of the policy form: offered models, and rules that the installation enforces."""

import json
import re
import secrets
from collections.abc import Iterator

import pytest
from django.test import Client
from django.utils import timezone

from caret.contracts.policy import Tier
from tenants.fleet.pools.assignments import KnownPool, PoolSharing
from tenants.fleet.pools.model_catalog import NewModel, publish_model, withdraw_model
from tenants.models import CapabilityChange
from tenants.policy.queries import find_policy_in_force
from tests.fixtures.companies import ACME_PEOPLE, Company, make_company
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.forms import parse_form, post_form
from tests.integration.console.pages.test_policies import set_policy_fields, submit_policy_form


@pytest.fixture
def company() -> Company:
    return make_company("acme", ACME_PEOPLE)


@pytest.fixture
def alice(company: Company, sign_in: SignIn) -> Client:
    """Return the browser of Alice, the administrator."""
    return sign_in(company.administrator)


def publish_test_model(name: str) -> None:
    pool = KnownPool(f"{name}-pool", Tier.FAST, name, PoolSharing.SHARED)
    publish_model(
        operator="test",
        model=NewModel("Large Coder", (pool.name,)),
        known_pools={pool.name: pool},
        now=timezone.now(),
    )


def withdraw_test_model(name: str) -> None:
    withdraw_model(operator="test", name=name, tier=Tier.FAST, now=timezone.now())


@pytest.fixture
def offered_model() -> Iterator[str]:
    """Publish one model until the test ends, and return its name."""
    name = f"model-{secrets.token_hex(4)}"
    publish_test_model(name)
    yield name
    withdraw_test_model(name)


def test_models_are_chosen_from_the_catalog(
    company: Company, alice: Client, offered_model: str
) -> None:
    page = alice.get("/policies/edit").content.decode()
    assert f"Large Coder ({offered_model})" in page

    answer = submit_policy_form(
        alice,
        models_restriction="only",
        models=[offered_model],
        default_models_fast=offered_model,
        default_models_fast_language_0="rust",
        default_models_fast_model_0=offered_model,
    )

    document = json.loads(parse_form(answer.content.decode())["document"])
    assert document["models"] == [offered_model]
    assert document["default_models"] == {"fast": {"*": offered_model, "rust": offered_model}}


# OFFERED stands for the name of the offered model.
@pytest.mark.parametrize(
    ("language", "model"),
    [("klingon", "OFFERED"), ("rust", ""), ("", "OFFERED"), ("rust", "gpt-9")],
)
def test_an_invalid_default_model_is_rejected(
    company: Company, alice: Client, offered_model: str, language: str, model: str
) -> None:
    answer = submit_policy_form(
        alice,
        default_models_fast_language_0=language,
        default_models_fast_model_0=model.replace("OFFERED", offered_model),
    )

    assert answer.status_code == 400
    assert find_policy_in_force(tenant_id=company.tenant_id).version == 1


def test_a_language_with_two_default_models_is_rejected(
    company: Company, alice: Client, offered_model: str
) -> None:
    answer = submit_policy_form(
        alice,
        default_models_fast_language_0="rust",
        default_models_fast_model_0=offered_model,
        default_models_fast_language_1="Rust",
        default_models_fast_model_1=offered_model,
    )

    assert answer.status_code == 400
    assert "Enter each language only once." in answer.content.decode()


def test_a_star_is_not_a_language(company: Company, alice: Client, offered_model: str) -> None:
    answer = submit_policy_form(
        alice,
        default_models_fast=offered_model,
        default_models_fast_language_0="*",
        default_models_fast_model_0=offered_model,
    )

    assert answer.status_code == 400
    assert "Enter the identifier of a language, such as python." in answer.content.decode()


def test_a_model_that_is_no_longer_offered_is_shown_as_such(
    company: Company, alice: Client, offered_model: str
) -> None:
    set_policy_fields(company, models=[offered_model])
    withdraw_test_model(offered_model)

    page = alice.get("/policies/edit").content.decode()
    unchanged = submit_policy_form(alice)

    publish_test_model(offered_model)  # again, because the fixture withdraws it
    assert f"{offered_model} (no longer offered)" in page
    assert "No changes" in unchanged.content.decode()


def test_without_a_catalog_models_cannot_be_chosen(company: Company, alice: Client) -> None:
    page = alice.get("/policies/edit").content.decode()
    forged = submit_policy_form(alice, models_restriction="only", models=["gpt-9"])

    assert "There are no models to choose from." in page
    assert "No changes" in forged.content.decode()


@pytest.fixture
def no_public_code() -> Iterator[None]:
    """Report that the gateways have no index of public code."""
    CapabilityChange.objects.create(
        capability="public_code_filter", is_available=False, since=timezone.now()
    )
    yield
    CapabilityChange.objects.create(
        capability="public_code_filter", is_available=True, since=timezone.now()
    )


@pytest.mark.usefixtures("no_public_code")
def test_a_rule_that_cannot_be_enforced_cannot_be_switched_on(
    company: Company, alice: Client
) -> None:
    page = alice.get("/policies/edit").content.decode()
    forged = submit_policy_form(alice, has_public_code_filter="on")

    assert "the gateways have no index of public code" in page
    assert re.search(r'name="has_public_code_filter"[^>]*disabled', page)
    assert "No changes" in forged.content.decode()


@pytest.mark.usefixtures("no_public_code")
def test_a_rule_that_is_not_enforced_is_marked_and_can_be_switched_off(
    company: Company, alice: Client
) -> None:
    set_policy_fields(company, has_public_code_filter=True)

    assert "Not enforced: the gateways have no index" in alice.get("/policies").content.decode()
    fields = parse_form(alice.get("/policies/edit").content.decode())
    del fields["has_public_code_filter"]
    answer = post_form(alice, "/policies/edit", **fields)

    document = json.loads(parse_form(answer.content.decode())["document"])
    assert document["has_public_code_filter"] is False
