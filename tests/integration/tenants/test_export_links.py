"""Download links: signed, short-lived, and valid only while their user has the permission."""

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, Forbidden, NotFound
from tenants.base.permissions import Role
from tenants.compliance.exports.jobs.download import open_download, require_valid_link
from tenants.compliance.exports.jobs.operations import create_signed_url
from tenants.compliance.exports.jobs.run import KEPT_FOR
from tenants.compliance.exports.jobs.signed_urls import SignedUrl, parse_signed_url, sign_url
from tenants.identity.api_keys.authentication import authenticate_key
from tenants.identity.api_keys.operations import revoke_key
from tenants.identity.api_keys.scopes import KeyScope
from tenants.identity.member_lifecycle import remove_member
from tenants.models import AuditEntry
from tests.fakes.exports import build_exports, file_of, start_export
from tests.fixtures.companies import ACME_PEOPLE, Cast, Company, make_company, make_service_key
from tests.fixtures.users import make_colleague


@pytest.fixture
def company() -> Company:
    return make_company("initech", ACME_PEOPLE)


def download(token: str, now: datetime | None = None) -> bytes:
    now = now or timezone.now()
    link = require_valid_link(token=token, now=now)
    download_file = open_download(link=link, address="192.0.2.9", request_id="r", now=now)
    return b"".join(download_file.read_pieces())


def test_creating_and_using_a_link_is_audited(company: Company) -> None:
    export_id = start_export(company)
    build_exports(company)

    link = create_signed_url(
        actor=company.administrator.actor, export_id=export_id, now=timezone.now()
    )

    assert download(link.token) == file_of(company, export_id)
    with tenant_scope(company.tenant_id):
        entries = AuditEntry.objects.filter(target=f"export:{export_id}").order_by("sequence")
        facts = [(entry.action, str(entry.actor_id), entry.address) for entry in entries]
    alice = company.administrator.user_id
    # The requests of all people come from 192.0.2.7. The function `download` has another address.
    assert facts == [
        ("export.requested", alice, "192.0.2.7"),
        ("export.finished", "None", None),
        ("export.link_given", alice, "192.0.2.7"),
        ("export.downloaded", alice, "192.0.2.9"),
    ]


def test_a_link_expires_and_a_changed_link_is_invalid(company: Company) -> None:
    export_id = start_export(company)
    build_exports(company)
    now = timezone.now()
    token = create_signed_url(actor=company.administrator.actor, export_id=export_id, now=now).token

    with pytest.raises(NotFound):
        download(token, now + timedelta(minutes=10))  # the link's validity
    for index in range(0, len(token), 7):  # every seventh character, as a sample
        changed_token = token[:index] + ("A" if token[index] != "A" else "B") + token[index + 1 :]
        with pytest.raises(NotFound):
            download(changed_token)
    for text in ("", "=", "é", token[:-4], "\0", token + "AAAA"):
        assert parse_signed_url(text, now=now) is None


def test_a_link_to_another_tenants_export_is_not_found(company: Company, cast: Cast) -> None:
    export_id = start_export(company)
    build_exports(company)
    bob = cast.globex.administrator
    expires_at = timezone.now() + timedelta(minutes=5)
    url = SignedUrl(cast.globex.tenant_id, export_id, expires_at, user_id=bob.user_id, key=None)
    token = sign_url(url)

    with pytest.raises(NotFound):
        download(token)


def test_an_expired_export_gives_no_link_even_before_its_cleanup(company: Company) -> None:
    export_id = start_export(company)
    build_exports(company)
    after_expiry = timezone.now() + KEPT_FOR + timedelta(minutes=1)

    with pytest.raises(Conflict, match="its status is “expired”"):
        create_signed_url(actor=company.administrator.actor, export_id=export_id, now=after_expiry)


def test_links_of_a_removed_member_are_invalid(company: Company) -> None:
    colleague = make_colleague(company, Role.AUDITOR)
    export_id = start_export(company)
    build_exports(company)
    token = create_signed_url(actor=colleague.actor, export_id=export_id, now=timezone.now()).token
    download(token)

    remove_member(
        actor=company.platform, user_id=colleague.user_id, reason="left", now=timezone.now()
    )

    with pytest.raises(NotFound):
        download(token)


def test_links_of_a_revoked_key_are_invalid(company: Company) -> None:
    key = make_service_key(company, KeyScope.EXPORTS, KeyScope.USAGE_READ)
    actor = authenticate_key(text=key.text, address="192.0.2.7", now=timezone.now())
    export_id = start_export(company, actor=actor)
    build_exports(company)
    token = create_signed_url(actor=actor, export_id=export_id, now=timezone.now()).token
    download(token)

    revoke_key(
        actor=company.platform, lookup_id=key.key.lookup_id, reason="lost", now=timezone.now()
    )

    with pytest.raises(NotFound):
        download(token)


def test_a_key_cannot_export_data_that_it_may_not_read(company: Company) -> None:
    key = make_service_key(company, KeyScope.EXPORTS)
    actor = authenticate_key(text=key.text, address="192.0.2.7", now=timezone.now())

    with pytest.raises(Forbidden):
        start_export(company, actor=actor)
