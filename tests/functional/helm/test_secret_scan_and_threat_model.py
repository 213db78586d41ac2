"""The scan for secrets in the repository's files, and the tests that the threat model names."""

import re
import subprocess
from pathlib import Path

from caret.local.paths import REPOSITORY

FIND_SECRETS = REPOSITORY / "platform" / "scripts" / "find_secrets"
THREATS = REPOSITORY / "platform" / "docs" / "threat-model.md"


def _scan(file: Path, text: str) -> subprocess.CompletedProcess[str]:
    file.write_text(text)
    return subprocess.run(
        [str(FIND_SECRETS), str(file)], capture_output=True, text=True, timeout=300, check=False
    )


def test_an_aws_access_key_in_a_file_is_reported_but_not_printed(tmp_path: Path) -> None:
    planted_key = "AKIA" + "IOSFODNN7QXAMPLZ"  # in two parts: scanners must not report this file

    result = _scan(tmp_path / "settings.py", f'key = "{planted_key}"\n')

    assert result.returncode != 0
    assert "AWS Access Key" in result.stdout
    assert planted_key not in result.stdout


def test_an_example_url_is_not_reported_as_a_secret(tmp_path: Path) -> None:
    assert _scan(tmp_path / "mail.md", "smtp://user:password@host:587\n").returncode == 0


def test_a_password_in_a_url_is_reported(tmp_path: Path) -> None:
    line_with_password = "postgresql://caret:" + "tr0ub4dor" + "@db.example.com/caret\n"

    assert _scan(tmp_path / "up.env", line_with_password).returncode != 0


def test_every_threat_names_tests_that_exist() -> None:
    # Without the header and the line below it.
    rows = [line for line in THREATS.read_text().splitlines() if line.startswith("| ")][2:]
    tests_by_row = [re.findall(r"`(tests/\S+\.py)`", row.rpartition(" | ")[2]) for row in rows]

    assert len(rows) > 12
    assert [row for row, tests in zip(rows, tests_by_row, strict=True) if not tests] == []
    missing = [path for tests in tests_by_row for path in tests if not (REPOSITORY / path).exists()]
    assert missing == []
