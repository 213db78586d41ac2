"""The page on which an owner transfers the ownership of a tenant to another member."""

import pytest

from tenants.base.permissions import Role
from tests.fixtures.companies import ACME_PEOPLE, Company, make_company
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.test_members import current_role_of


@pytest.fixture
def company() -> Company:
    return make_company("initech", ACME_PEOPLE)


def test_an_owner_transfers_the_ownership(company: Company, sign_in_with_step_up: SignIn) -> None:
    path = f"/members/{company.developer.user_id}"
    owner = sign_in_with_step_up(company.people[Role.OWNER])

    assert f'href="{path}/transfer"' in owner.get(path).content.decode()
    assert "Transfer ownership to Ada?" in owner.get(f"{path}/transfer").content.decode()
    done = owner.post(f"{path}/transfer", {"reason": "Leaving"}, follow=True).content.decode()

    assert "Ada is now an owner, and you are an administrator." in done
    assert current_role_of(company, Role.DEVELOPER) is Role.OWNER
    assert current_role_of(company, Role.OWNER) is Role.ADMINISTRATOR


def test_the_transfer_of_ownership_asks_for_the_password_when_saving(
    company: Company, sign_in: SignIn
) -> None:
    path = f"/members/{company.developer.user_id}/transfer"
    owner = sign_in(company.people[Role.OWNER])

    assert owner.get(path).status_code == 200
    assert owner.post(path)["Location"].startswith("/account/confirm")
    assert current_role_of(company, Role.OWNER) is Role.OWNER


def test_only_an_owner_transfers_the_ownership_and_not_to_themselves(
    company: Company, sign_in_with_step_up: SignIn
) -> None:
    olga, ada = company.people[Role.OWNER], company.developer
    administrator, owner = sign_in_with_step_up(company.administrator), sign_in_with_step_up(olga)

    assert administrator.post(f"/members/{ada.user_id}/transfer").status_code == 403
    assert owner.post(f"/members/{olga.user_id}/transfer").status_code == 403
    assert current_role_of(company, Role.OWNER) is Role.OWNER
    assert current_role_of(company, Role.DEVELOPER) is Role.DEVELOPER
