"""Processes that could not decrypt the stored data, or read a setting, do not start."""

import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest
from django.utils import timezone

from caret.local.errors import ExitCode
from tenants.security.encryption.envelope import SealContext
from tenants.security.encryption.operations import seal_in_scope
from tenants.security.encryption.startup_check import check_root_keys, require_root_keys
from tests.fixtures.companies import make_company
from tests.stack.services import Services

ROOT = Path(__file__).resolve().parents[3]
CONSOLE = [sys.executable, "manage.py", "console"]
CELERY = [sys.executable, "-m", "celery", "-A", "caret.celery", "worker", "--pool", "solo"]
CHECK = [sys.executable, "manage.py", "check", "--database", "default"]


@pytest.fixture(autouse=True)
def _sealed_data() -> None:
    company = make_company("acme", {})
    context = SealContext(table="content_object", column="content", row="7")
    seal_in_scope(company.tenant_id, "user:ada", context=context, data=b"text", now=timezone.now())


def test_the_checks_pass_with_the_root_key() -> None:
    require_root_keys()

    assert check_root_keys(databases=["default"]) == []


def test_a_process_does_not_start_with_another_root_key(services: Services, tmp_path: Path) -> None:
    file = tmp_path / "root"
    file.write_text(secret := secrets.token_hex(32))

    process = run_process(CELERY, services, CARET_ROOT_KEYS=f"file:{file}")

    assert process.returncode != 0
    assert "Tenant keys are wrapped by a root key that cannot be used" in process.stderr
    assert secret not in process.stderr


# A root key in a file that does not exist, and a root key of an unknown kind.
@pytest.mark.parametrize(
    ("command", "root_keys"),
    [(CONSOLE, "file:/no/such/file"), (CHECK, "file:/no/such/file"), (CELERY, "vault:x")],
)
def test_a_process_does_not_start_without_the_root_key(
    services: Services, command: list[str], root_keys: str
) -> None:
    process = run_process(command, services, CARET_ROOT_KEYS=root_keys)

    assert process.returncode != 0
    assert "The root key cannot be used: CARET_ROOT_KEYS" in process.stderr


def test_the_console_does_not_start_with_an_empty_list_of_github_keys(
    services: Services, tmp_path: Path
) -> None:
    file = tmp_path / "keys.json"
    file.write_text('{"public_keys": []}')

    process = run_process(CONSOLE, services, CARET_GITHUB_SECRET_SCANNING_KEYS=str(file))

    assert process.returncode == ExitCode.BAD_SETTING
    assert process.stderr == (
        f"caret: CARET_GITHUB_SECRET_SCANNING_KEYS: {file} contains no key for ECDSA.\n"
    )


def run_process(
    command: list[str], services: Services, **environment: str
) -> subprocess.CompletedProcess[str]:
    process_environment = {
        **os.environ,
        **services.process_mark,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "platform")]),
        **environment,
    }
    return subprocess.run(
        command,
        cwd=ROOT,
        env=process_environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
