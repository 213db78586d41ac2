"""Models may be trained only with content whose users have consented to training."""

from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from tenants.security.encryption.operations import shred_tenant
from tests.integration.content_capture.consenting_tenant import BOTH, YES, Willing, training


def test_training_data_is_of_those_who_agreed_to_training(
    acme: Willing, globex: Willing, tmp_path: Path
) -> None:
    ada, alice = acme.company.developer, acme.company.administrator
    acme.agree(ada, BOTH)
    acme.agree(alice, YES)
    globex.agree(globex.company.developer, BOTH)
    acme.keep(ada, "ada's")
    acme.keep(alice, "alice's")
    globex.keep(globex.company.developer, "the neighbour's")

    assert training(acme, tmp_path) == ["ada's"]


def test_what_was_kept_before_the_yes_to_training_trains_nothing(
    acme: Willing, tmp_path: Path
) -> None:
    ada = acme.company.developer
    acme.agree(ada, YES)
    acme.keep(ada, "before")
    acme.agree(ada, BOTH)
    acme.keep(ada, "after")

    assert training(acme, tmp_path) == ["after"]


def test_what_was_kept_trains_nothing_after_the_no_to_training(
    acme: Willing, tmp_path: Path
) -> None:
    ada = acme.company.developer
    acme.agree(ada, BOTH)
    acme.keep(ada, "before")

    acme.agree(ada, YES)
    acme.agree(ada, BOTH)

    assert training(acme, tmp_path) == []
    assert len(acme.objects) == 1


def test_the_tenants_no_to_training_holds_for_all(acme: Willing, tmp_path: Path) -> None:
    acme.agree(acme.company.developer, BOTH)
    acme.keep(acme.company.developer, "planted")

    acme.allow(training=False)

    assert training(acme, tmp_path) == []


def test_training_data_names_nobody_and_is_its_owners_only(acme: Willing, tmp_path: Path) -> None:
    ada = acme.company.developer
    acme.agree(ada, BOTH)
    acme.keep(ada, "planted")

    training(acme, tmp_path)

    out = tmp_path / "out.ndjson"
    assert ada.user_id not in out.read_text()
    assert ada.email not in out.read_text()
    assert out.stat().st_mode & 0o077 == 0


def test_an_export_overwrites_nothing(acme: Willing, tmp_path: Path) -> None:
    out = tmp_path / "out.ndjson"
    out.write_text("mine")

    with pytest.raises(CommandError, match="Nothing was written"):
        call_command("export_training_data", acme.company.slug, "--out", str(out))

    assert out.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["out.ndjson"]


def test_a_shredded_tenant_has_no_training_data(acme: Willing, tmp_path: Path) -> None:
    acme.agree(acme.company.developer, BOTH)
    acme.keep(acme.company.developer, "planted")

    shred_tenant(tenant_id=acme.company.tenant_id, now=timezone.now())

    assert training(acme, tmp_path) == []
