"""Models may be trained only with content whose users have consented to training."""

from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from tenants.security.encryption.operations import shred_tenant
from tests.integration.content_capture.consenting_tenant import (
    CAPTURE_AND_TRAINING_CONSENT,
    CAPTURE_CONSENT,
    ConsentingTenant,
    export_training_prefixes,
)


def test_training_data_contains_only_users_with_training_consent(
    acme: ConsentingTenant, globex: ConsentingTenant, tmp_path: Path
) -> None:
    ada, alice = acme.company.developer, acme.company.administrator
    acme.give_consent(ada, CAPTURE_AND_TRAINING_CONSENT)
    acme.give_consent(alice, CAPTURE_CONSENT)
    globex.give_consent(globex.company.developer, CAPTURE_AND_TRAINING_CONSENT)
    acme.capture(ada, "ada's")
    acme.capture(alice, "alice's")
    globex.capture(globex.company.developer, "the neighbour's")

    assert export_training_prefixes(acme, tmp_path) == ["ada's"]


def test_content_stored_before_the_training_consent_is_excluded(
    acme: ConsentingTenant, tmp_path: Path
) -> None:
    ada = acme.company.developer
    acme.give_consent(ada, CAPTURE_CONSENT)
    acme.capture(ada, "before")
    acme.give_consent(ada, CAPTURE_AND_TRAINING_CONSENT)
    acme.capture(ada, "after")

    assert export_training_prefixes(acme, tmp_path) == ["after"]


def test_withdrawing_the_training_consent_excludes_stored_content(
    acme: ConsentingTenant, tmp_path: Path
) -> None:
    ada = acme.company.developer
    acme.give_consent(ada, CAPTURE_AND_TRAINING_CONSENT)
    acme.capture(ada, "before")

    acme.give_consent(ada, CAPTURE_CONSENT)
    acme.give_consent(ada, CAPTURE_AND_TRAINING_CONSENT)

    assert export_training_prefixes(acme, tmp_path) == []
    assert len(acme.objects) == 1


def test_the_tenants_ban_on_training_applies_to_all_users(
    acme: ConsentingTenant, tmp_path: Path
) -> None:
    acme.give_consent(acme.company.developer, CAPTURE_AND_TRAINING_CONSENT)
    acme.capture(acme.company.developer, "planted")

    acme.allow_content_capture(training=False)

    assert export_training_prefixes(acme, tmp_path) == []


def test_training_data_names_no_user_and_is_private(acme: ConsentingTenant, tmp_path: Path) -> None:
    ada = acme.company.developer
    acme.give_consent(ada, CAPTURE_AND_TRAINING_CONSENT)
    acme.capture(ada, "planted")

    assert export_training_prefixes(acme, tmp_path) == ["planted"]

    out = tmp_path / "out.ndjson"
    assert ada.user_id not in out.read_text()
    assert ada.email not in out.read_text()
    assert out.stat().st_mode & 0o077 == 0


def test_an_export_never_overwrites_a_file(acme: ConsentingTenant, tmp_path: Path) -> None:
    out = tmp_path / "out.ndjson"
    out.write_text("mine")

    with pytest.raises(CommandError, match="Nothing was written"):
        call_command("export_training_data", acme.company.slug, "--out", str(out))

    assert out.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["out.ndjson"]


def test_a_shredded_tenant_has_no_training_data(acme: ConsentingTenant, tmp_path: Path) -> None:
    acme.give_consent(acme.company.developer, CAPTURE_AND_TRAINING_CONSENT)
    acme.capture(acme.company.developer, "planted")

    shred_tenant(tenant_id=acme.company.tenant_id, now=timezone.now())

    assert export_training_prefixes(acme, tmp_path) == []
