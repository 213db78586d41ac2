"""Django's deployment check accepts the production settings, and rejects insecure ones."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PRODUCTION = {
    "CARET_HTTPS": "True",
    "CARET_ALLOWED_HOSTS": "caret.example.com",
    "CARET_CONSOLE_URL": "https://caret.example.com",
    "CARET_OPERATOR_ADMIN_PATH": "operators",
}


def check(**settings: str) -> "subprocess.CompletedProcess[str]":
    paths = os.pathsep.join([str(ROOT), str(ROOT / "platform")])
    return subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths, **PRODUCTION, **settings},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_production_settings_pass_djangos_deployment_check() -> None:
    done = check()

    assert done.returncode == 0, done.stderr
    assert "no issues" in done.stdout


def test_insecure_settings_fail_djangos_deployment_check() -> None:
    done = check(CARET_HTTPS="False", CARET_DEBUG="True")

    assert done.returncode != 0
    for code in (
        "security.W010",  # the session cookie is also sent without HTTPS
        "security.W016",  # the CSRF cookie is also sent without HTTPS
        "security.W018",  # debug mode
        "security.W008",  # no redirect to HTTPS
    ):
        assert code in done.stderr
