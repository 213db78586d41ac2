"""A saved file restarts the programs that import it, and no others."""

import subprocess
import sys
from pathlib import Path

import pytest

from caret.local.paths import REPOSITORY
from caret.local.processes.reload import (
    BEAT,
    CONSOLE,
    GATEWAY,
    WORKER,
    find_affected_services,
    watch_changed_files,
)

_TASKS = sorted(path.relative_to(REPOSITORY) for path in REPOSITORY.glob("tenants/*/tasks.py"))
# The modules with which each program begins, separated by commas.
_ENTRIES = {
    CONSOLE: "caret.asgi, caret.urls, console.urls, console.api.urls, console.operator_admin.urls",
    GATEWAY: "caret.gateway_server, caret.composition.gateway_app",
    WORKER: "caret.celery, caret.settings, "
    + ", ".join(".".join(path.with_suffix("").parts) for path in _TASKS),
}
# All programs import these files, but a change of them restarts no program.
_SETUP = ("platform/caret/__init__.py", "platform/caret/local/")
# The worker imports these files, too, but a change of them restarts only the console.
_APPS = ("console/__init__.py", "console/apps.py")
# A script that prints the files that a program imports. Only the gateway does not use Django.
_PRINT_IMPORTS = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "caret.settings"
if sys.argv[1] != "caret.gateway_server":
    import django
    django.setup()
import {entries}
for module in list(sys.modules.values()):
    print(getattr(module, "__file__", None) or "")
"""


@pytest.mark.parametrize(
    ("file", "programs"),
    [
        ("inference/filtering/filter.py", {GATEWAY}),
        ("tenants/billing/tasks.py", {CONSOLE, WORKER}),
        ("console/views/keys/detail.py", {CONSOLE}),
        ("console/locale/de/LC_MESSAGES/django.mo", {CONSOLE}),
        ("platform/caret/contracts/policy.py", {CONSOLE, GATEWAY, WORKER}),
        ("platform/caret/settings/__init__.py", {CONSOLE, WORKER, BEAT}),
        ("console/templates/console/base.html", set()),  # the console reloads it by itself
        ("console/static/console.css", set()),
        ("platform/caret/local/processes/supervisor.py", set()),
        ("tests/conftest.py", set()),
    ],
)
def test_a_changed_file_restarts_the_programs_that_import_it(file: str, programs: set[str]) -> None:
    assert find_affected_services(file) == programs


@pytest.mark.deep  # each case starts an interpreter that imports a whole program
@pytest.mark.parametrize("program", _ENTRIES)
def test_a_program_restarts_for_all_code_that_it_imports(program: str) -> None:
    entries = _ENTRIES[program]
    output = subprocess.run(
        [sys.executable, "-c", _PRINT_IMPORTS.format(entries=entries), entries.split(",")[0]],
        capture_output=True,
        text=True,
        check=True,
        cwd=REPOSITORY,
    ).stdout
    our_files = [
        str(Path(line).relative_to(REPOSITORY))
        for line in output.splitlines()
        if line.startswith(str(REPOSITORY)) and ".venv" not in line
    ]

    missed = [file for file in our_files if program not in find_affected_services(file)]

    assert len(our_files) > 50  # each program imports hundreds
    assert [file for file in missed if not file.startswith((*_SETUP, *_APPS))] == []


def test_a_saved_file_is_reported_by_its_path_in_the_repository(tmp_path: Path) -> None:
    for folder in ("inference", "tenants", "console", "platform/caret"):
        (tmp_path / folder).mkdir(parents=True)
    changes = watch_changed_files(tmp_path)
    next(changes)  # from now on, files are watched

    (tmp_path / "tenants" / "apps.py").write_text("")

    # Steps without saved files yield an empty set.
    assert next(filter(None, changes)) == {"tenants/apps.py"}
