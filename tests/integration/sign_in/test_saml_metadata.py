"""SAML metadata: the provider's, and Caret's own."""

import pytest
from django.test import Client, override_settings
from django.utils import timezone

from tenants.base.errors import Forbidden, InvalidValue
from tenants.base.permissions import Role
from tenants.identity.sso.metadata_fetch import fetch_metadata
from tenants.identity.sso.operations import SamlProviderConfig, set_saml_provider
from tenants.identity.sso.queries import get_rules
from tests.fakes.saml_provider import SamlProvider
from tests.fixtures.companies import Cast, Company
from tests.fixtures.users import make_colleague
from tests.integration.sign_in.by_saml import configure_saml, make_saml_company

# Shared by all tests, because generating its key takes 0.1 s.
PROVIDER = SamlProvider()


@pytest.fixture
def company() -> Company:
    return make_saml_company(PROVIDER)


def test_the_service_provider_metadata_are_published(company: Company) -> None:
    response = Client().get(f"/sign-in/saml/{company.tenant_id}/metadata")

    text = response.content.decode()
    assert f'Location="http://127.0.0.1:8400/sign-in/saml/{company.tenant_id}"' in text
    assert 'WantAssertionsSigned="true"' in text


@pytest.mark.parametrize(
    "metadata",
    [
        "",
        "<x/>",
        "<" * 10,
        PROVIDER.metadata(binding="HTTP-POST"),
        PROVIDER.metadata(url="ftp://login.example.com"),
        PROVIDER.metadata(url="https://user@login.example.com"),
        PROVIDER.metadata(certificate=""),
        PROVIDER.metadata(certificate="AAAA"),
        PROVIDER.metadata(entity_id=""),
        PROVIDER.metadata(url="https://a..b/saml"),
        PROVIDER.metadata() + " " * 300_000,
    ],
    ids=[
        "empty",
        "no metadata",
        "no XML",
        "another binding",
        "FTP",
        "user name in the URL",
        "no certificate",
        "no valid certificate",
        "no entity ID",
        "no valid host",
        "too long",
    ],
)
def test_invalid_metadata_are_refused(company: Company, metadata: str) -> None:
    with pytest.raises(InvalidValue):
        configure_saml(company, metadata)


def test_metadata_are_fetched_only_from_public_addresses(company: Company) -> None:
    provider_config = SamlProviderConfig(
        metadata=None, url="https://127.0.0.1/metadata", fetch=fetch_metadata
    )

    with override_settings(PRIVATE_TARGETS=[]), pytest.raises(InvalidValue) as exc_info:
        set_saml_provider(actor=company.platform, config=provider_config, now=timezone.now())

    assert exc_info.value.field == "metadata_url"


def test_an_administrator_cannot_configure_a_provider(company: Company) -> None:
    """An administrator could otherwise sign in as the owner. The URL is not fetched."""
    alice = make_colleague(company, Role.ADMINISTRATOR)

    def fetch(url: str) -> str:
        raise AssertionError(url)

    provider_config = SamlProviderConfig(metadata=None, url="https://x.example", fetch=fetch)
    with pytest.raises(Forbidden):
        set_saml_provider(actor=alice.actor, config=provider_config, now=timezone.now())


def test_the_settings_show_the_fingerprints_of_trusted_certificates(
    company: Company, cast: Cast
) -> None:
    provider = get_rules(actor=company.platform).provider

    assert provider is not None
    assert (provider.protocol, provider.issuer, provider.client_id) == (
        "saml",
        PROVIDER.entity_id,
        None,
    )
    assert [len(text) for text in provider.fingerprints] == [64]  # SHA-256 in hex
    assert get_rules(actor=cast.globex.platform).provider is None
