"""An operator needs a code of the authenticator app before changing a tenant."""

import pytest

from console.limits.throttling import MAX_ATTEMPTS, Secret
from tenants.models import Tenant
from tests.fixtures.companies import ACME_PEOPLE, Company, make_company
from tests.integration.operators.browsers import CHANGE_REASON, make_account, new_browser

CHANGES: list[tuple[str, dict[str, str]]] = [
    ("status", {"status": "suspended"}),
    ("limits", {"max_concurrent_completions": "5", "max_requests_per_minute": "600"}),
    ("region", {"region": "eu-north"}),
]


@pytest.fixture
def acme() -> Company:
    return make_company("acme", ACME_PEOPLE)


@pytest.mark.parametrize(("section", "form"), CHANGES)
def test_a_change_requires_a_code_and_keeps_the_form(
    acme: Company, section: str, form: dict[str, str]
) -> None:
    account = make_account()
    browser = new_browser()
    browser.sign_in(account.form())
    browser.open_tenant(acme)
    before = Tenant.objects.values().get(id=acme.tenant_id)

    prompt = browser.change(acme, section, **form)
    wrong_code = browser.change(acme, section, **form, code="000000")
    unchanged = Tenant.objects.values().get(id=acme.tenant_id)
    # The sign-in has used the current code, and a code works once.
    done = browser.change(acme, section, **form, code=account.code(later_by=1))

    assert (prompt.status_code, wrong_code.status_code) == (200, 400)
    for text in form.values():
        assert f'value="{text}"' in prompt.content.decode()
    assert CHANGE_REASON in prompt.content.decode()
    assert unchanged == before
    assert done["Location"].endswith(f"?done={section}")
    assert Tenant.objects.values().get(id=acme.tenant_id) != before


def test_a_form_without_a_code_does_not_count_as_a_guess(acme: Company) -> None:
    account = make_account()
    browser = new_browser()
    browser.sign_in(account.form())
    browser.open_tenant(acme)

    for _ in range(MAX_ATTEMPTS[Secret.CODE] + 1):
        browser.change(acme, "region", region="eu-north")
    done = browser.change(acme, "region", region="eu-north", code=account.code(later_by=1))

    assert done["Location"].endswith("?done=region")
