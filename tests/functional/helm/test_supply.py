"""Secrets are found before they are committed, and the threat model names tests that exist."""

import re
import subprocess
from pathlib import Path

from caret.local.paths import REPOSITORY

FIND_SECRETS = REPOSITORY / "platform" / "scripts" / "find_secrets"
THREATS = REPOSITORY / "platform" / "docs" / "threat-model.md"


def _find(file: Path, text: str) -> subprocess.CompletedProcess[str]:
    file.write_text(text)
    return subprocess.run(
        [str(FIND_SECRETS), str(file)], capture_output=True, text=True, timeout=60, check=False
    )


def test_a_key_in_a_file_is_found(tmp_path: Path) -> None:
    planted = "AKIA" + "IOSFODNN7QXAMPLZ"

    found = _find(tmp_path / "settings.py", f'key = "{planted}"\n')

    assert found.returncode != 0
    assert "AWS Access Key" in found.stdout
    assert planted not in found.stdout


def test_an_example_url_is_not_reported_as_a_secret(tmp_path: Path) -> None:
    assert _find(tmp_path / "mail.md", "smtp://user:password@host:587\n").returncode == 0


def test_a_password_in_a_url_is_reported(tmp_path: Path) -> None:
    written = "postgresql://caret:" + "tr0ub4dor" + "@db.example.com/caret\n"

    assert _find(tmp_path / "up.env", written).returncode != 0


def test_the_tests_named_in_the_threat_model_exist() -> None:
    rows = [line for line in THREATS.read_text().splitlines() if line.startswith("| ")][2:]
    named = [re.findall(r"`(tests/\S+\.py)`", row.rpartition(" | ")[2]) for row in rows]

    assert len(rows) > 12
    assert [row for row, tests in zip(rows, named, strict=True) if not tests] == []
    missing = [each for tests in named for each in tests if not (REPOSITORY / each).exists()]
    assert missing == []
