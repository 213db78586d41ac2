"""The Dockerfile of the service's image, tested without a container engine such as Docker.

The copied files exist, are sufficient and compile. The installed packages are pinned.

The tests do not cover the base image, the creation of the user, and the installation from the
image's lock file. (`platform/scripts/setup` installs from another lock file.)
"""

import fnmatch
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from caret.local.paths import REPOSITORY

IMAGES = REPOSITORY / "platform" / "deploy" / "images"
SERVICE = (IMAGES / "service.Dockerfile").read_text()
# An instruction and its arguments. A line that ends with a backslash continues in the next line.
_STEP = re.compile(r"^(COPY|RUN|ENV|USER|ENTRYPOINT|FROM) ((?:.*\\\n)*.*)$", re.MULTILINE)
# Settings that `manage.py migrate --help` needs. No store is at these addresses.
_STORES = {
    "CARET_ROOT_SECRET": "0" * 64,
    "DATABASE_URL": "postgresql:///none",
    "CARET_OWNER_DATABASE_URL": "postgresql:///none",
    "REDIS_URL": "redis://none",
}


def _steps(*kinds: str) -> Iterator[tuple[str, str]]:
    """Yield kind and arguments of the Dockerfile's instructions of these kinds."""
    for kind, arguments in _STEP.findall(SERVICE):
        if kind in kinds:
            yield kind, re.sub(r"\s*\\\n\s*", " ", arguments)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the files that the Dockerfile's last stage copies to /app, and return the folder."""
    app = tmp_path_factory.mktemp("app")
    for _, arguments in _steps("COPY"):
        # Files that come from an earlier stage, and files for an earlier stage.
        if arguments.startswith("--from") or "/tmp/" in arguments:  # noqa: S108  # in the image
            continue
        *sources, target = arguments.split()
        for source in sources:
            _copy(source, app / target if len(sources) == 1 else app / source)
    return app


def _copy(source: str, target: Path) -> None:
    """Copy a file, or the files of a folder that .dockerignore does not exclude.

    .dockerignore excludes everything (`*`), except the sources (`!SOURCE`). Further lines exclude
    parts of the sources.
    """
    if (REPOSITORY / source).is_file():
        shutil.copy(REPOSITORY / source, target)
        return
    excluded = [line for line in _dockerignore() if line != "*" and not line.startswith("!")]

    def list_ignored(folder: str, names: list[str]) -> set[str]:
        below = Path(folder).relative_to(REPOSITORY)
        return {
            name
            for name in names
            if any(fnmatch.fnmatch(str(below / name), pattern) for pattern in excluded)
        }

    shutil.copytree(REPOSITORY / source, target, ignore=list_ignored)


def _dockerignore() -> list[str]:
    return (IMAGES / "service.Dockerfile.dockerignore").read_text().split()


def test_copied_files_exist_and_are_not_ignored() -> None:
    allowed = {line[1:] for line in _dockerignore() if line.startswith("!")}
    sources = [
        source
        for _, arguments in _steps("COPY")
        if not arguments.startswith("--from")
        for source in arguments.split()[:-1]
    ]

    assert len(sources) > 4
    assert [source for source in sources if source not in allowed] == []
    assert [source for source in sources if not (REPOSITORY / source).exists()] == []


def test_the_image_compiles_and_its_commands_run(image: Path) -> None:
    (compiling,) = [arguments for _, arguments in _steps("RUN") if "compileall" in arguments]
    command = compiling.replace("/opt/caret/bin/python", sys.executable).split()
    subprocess.run(command, cwd=image, check=True)
    help_run = _manage(image, "migrate", "--help", **_STORES)
    failed_run = _manage(image, "gateway", CARET_ROOT_SECRET="0")

    assert help_run.returncode == 0, help_run.stderr
    assert failed_run.returncode != 0
    assert "CARET_ROOT_SECRET" in failed_run.stdout + failed_run.stderr
    assert "Traceback" not in failed_run.stderr
    # The image does not contain the demonstration model.
    assert not (image / "inference" / "demo_model" / "weights").exists()


def _manage(image: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("CARET_")}
    own = {"PYTHONPATH": f"{image}:{image / 'platform'}", "CARET_HOME": str(image / "home")}
    return subprocess.run(
        [sys.executable, "-P", "manage.py", *arguments],
        cwd=image,
        env={**inherited, **own, **settings},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_the_image_contains_every_package(image: Path) -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]

    # Imports would not prove it: a missing package would be found in the installation that runs
    # this test.
    assert [name for name in packages if not (image / name / "__init__.py").exists()] == []


def test_installed_packages_are_pinned_with_hashes() -> None:
    (installing,) = [arguments for _, arguments in _steps("RUN") if "pip install" in arguments]
    lock = (REPOSITORY / "platform" / "locks" / "service.txt").read_text()
    # An entry begins with the name of a package. Its indented lines contain the hashes.
    entries = [entry for entry in re.split(r"\n(?=[A-Za-z0-9])", lock) if entry[0] != "#"]

    assert "--require-hashes" in installing
    assert len(entries) > 50
    assert [entry for entry in entries if "==" not in entry.partition("\n")[0]] == []
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []


def test_both_images_run_as_an_unprivileged_user() -> None:
    for name in ("service.Dockerfile", "engine.Dockerfile"):
        users = re.findall(r"^USER (\S+)$", (IMAGES / name).read_text(), re.MULTILINE)
        assert users[-1] == "10001:10001"
