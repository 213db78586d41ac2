"""The command `manage.py billing`, with which operators set prices and bill tenants."""

import json
import secrets
from datetime import UTC, date, datetime
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from caret.contracts.pricing import TierPrices
from tenants.billing.invoices.queries import find_invoice
from tenants.billing.plans.queries import list_plans
from tests.fakes.billing import backdate_company, ingest_completion
from tests.fixtures.companies import make_company

OCTOBER = datetime(2026, 10, 3, 12, tzinfo=UTC)
# Costs 0.90 EUR: 0.15 EUR for a million prompt tokens, and 0.60 EUR for a million generated ones.
LARGE_USAGE = {"prompt_tokens": 2_000_000, "cached_tokens": 0, "generated_tokens": 1_000_000}


def run_billing(*arguments: str) -> str:
    """Run `manage.py billing`, and return its output."""
    out = StringIO()
    call_command("billing", *arguments, stdout=out)
    return out.getvalue()


def test_an_operator_bills_a_tenant_on_the_command_line(tmp_path: Path) -> None:
    company = make_company("operated", {})
    plan = f"plan-{secrets.token_hex(4)}"
    tiers, profile = tmp_path / "t.json", tmp_path / "p.json"
    prices = {"prompt": "0.15", "cached_prompt": "0.015", "generated": "0.60"}
    tiers.write_text(json.dumps({"fast": prices, "quality": prices}))
    profile.write_text(json.dumps({"customer": {"name": "Operated Ltd"}}))
    backdate_company(company, date(2026, 10, 1))
    run_billing("plan", plan, "--name", "Team", "--currency", "EUR")
    run_billing("price", plan, "--from", "2026-01-01", "--seat", "19.00", "--tiers", str(tiers))
    run_billing("subscribe", company.slug, plan, "--from", "2026-10-01")
    run_billing("profile", company.slug, "--file", str(profile))
    run_billing("credit", company.slug, "0.10", "--reason", "Welcome.")
    ingest_completion(company, person=None, at=OCTOBER, **LARGE_USAGE)

    invoice_output = run_billing("invoice", company.slug)
    credit_note_output = run_billing(
        "credit-note", company.slug, "1", "0.05", "--reason", "An outage."
    )
    second_invoice_output = run_billing("invoice", company.slug)

    assert "Issued: OPERATED-" in invoice_output
    assert "Issued: OPERATED-" in credit_note_output
    assert "No invoice is due." in second_invoice_output
    document = find_invoice(actor=company.platform, number=1).document
    # Usage of 0.90 EUR less a credit of 0.10 EUR. Without users, no seats are billed.
    assert (document.head.customer.name, document.total_cents) == ("Operated Ltd", 80)


def test_an_operator_sets_the_price_of_a_model(tmp_path: Path) -> None:
    plan = f"plan-{secrets.token_hex(4)}"
    tiers, models = tmp_path / "t.json", tmp_path / "m.json"
    prices = {"prompt": "0.15", "cached_prompt": "0.015", "generated": "0.60"}
    tiers.write_text(json.dumps({"fast": prices, "quality": prices}))
    models.write_text(json.dumps({"coder-large": prices | {"generated": "4.20"}}))
    run_billing("plan", plan, "--name", "Team", "--currency", "EUR")
    files = ("--tiers", str(tiers), "--models", str(models))

    output = run_billing("price", plan, "--from", "2026-01-01", "--seat", "19.00", *files)

    (price,) = (view.prices[-1] for view in list_plans() if view.slug == plan)
    micros_per_million_tokens = TierPrices(
        prompt=150_000, cached_prompt=15_000, generated=4_200_000
    )
    assert price.model_prices == {"coder-large": micros_per_million_tokens}
    assert "The catalogue has no model coder-large." in output


@pytest.mark.parametrize(
    "models",
    [
        "no JSON",
        "[]",
        '{"coder": 1}',
        '{"coder": {"prompt": "1"}}',
        '{"coder": {"prompt": "1", "cached_prompt": "1", "generated": "a lot"}}',
        '{"coder": {"prompt": "-1", "cached_prompt": "1", "generated": "1"}}',
        '{"a model": {"prompt": "1", "cached_prompt": "1", "generated": "1"}}',
    ],
)
def test_invalid_prices_of_models_are_rejected(tmp_path: Path, models: str) -> None:
    plan = f"plan-{secrets.token_hex(4)}"
    tiers, file = tmp_path / "t.json", tmp_path / "m.json"
    prices = {"prompt": "0.15", "cached_prompt": "0.015", "generated": "0.60"}
    tiers.write_text(json.dumps({"fast": prices, "quality": prices}))
    file.write_text(models)
    run_billing("plan", plan, "--name", "Team", "--currency", "EUR")
    files = ("--tiers", str(tiers), "--models", str(file))

    with pytest.raises(CommandError):
        run_billing("price", plan, "--from", "2026-01-01", "--seat", "19.00", *files)

    assert [view.prices for view in list_plans() if view.slug == plan] == [()]


@pytest.mark.parametrize(
    "arguments",
    [
        ("credit", "nobody", "1", "--reason", "x"),
        ("subscribe", "nobody", "team", "--from", "2026-10-01"),
        ("plan", "Not A Slug", "--name", "x", "--currency", "EUR"),
    ],
)
def test_invalid_arguments_are_rejected(arguments: tuple[str, ...]) -> None:
    with pytest.raises(CommandError):
        run_billing(*arguments)


@pytest.mark.parametrize("amount", ["a lot", "NaN", "Infinity"])
def test_a_text_that_is_no_amount_is_called_so(amount: str) -> None:
    with pytest.raises(CommandError, match=f"{amount} is not an amount of money"):
        run_billing("credit", "nobody", amount, "--reason", "x")


def test_an_amount_with_seven_decimals_is_rejected() -> None:
    with pytest.raises(CommandError, match="six decimals at most"):
        run_billing("credit", "nobody", "0.0000001", "--reason", "x")


def test_a_file_that_is_not_json_is_named(tmp_path: Path) -> None:
    profile = tmp_path / "profile.json"
    profile.write_text("no JSON")

    with pytest.raises(CommandError, match=r"profile\.json"):
        run_billing("profile", "nobody", "--file", str(profile))


def test_a_profile_without_a_customer_is_rejected_with_its_reason(tmp_path: Path) -> None:
    company = make_company("operated-profile", {})
    profile = tmp_path / "profile.json"
    profile.write_text(json.dumps({"tax": {"name": "VAT", "basis_points": 1_900}}))

    with pytest.raises(CommandError, match="customer"):
        run_billing("profile", company.slug, "--file", str(profile))
