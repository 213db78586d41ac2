"""Scratch copies of the repository's tracked files, where faults are planted and tests run."""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tests.faults.fault import BadFault, Fault
from tests.stack.home import HOME_TEMPLATE_VARIABLE

_IMPORT_ROOTS: Final = (".", "platform", "platform/ide")
_PACKAGES: Final = ("caret", "inference", "tenants", "console", "caret_ls", "tests")
_PRINT_PACKAGE_PATHS: Final = (
    f"import {', '.join(_PACKAGES)}; print({', '.join(f'{p}.__path__' for p in _PACKAGES)})"
)


@dataclass(frozen=True, slots=True)
class Scratch:
    root: Path
    template: Path | None = None  # a home folder to copy, see `home_template`

    def with_template(self, template: Path | None) -> "Scratch":
        return replace(self, template=template)

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment variables of each process: the copy's packages come first."""
        roots = os.pathsep.join(str((self.root / name).resolve()) for name in _IMPORT_ROOTS)
        environment = {**os.environ, "PYTHONPATH": roots}
        # Without compiled files, Python would compile all modules again for each fault, which takes
        # longer than most tests.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        # platform/scripts/test sets this variable to the template of the original tree.
        environment.pop(HOME_TEMPLATE_VARIABLE, None)
        if self.template is not None:
            environment[HOME_TEMPLATE_VARIABLE] = str(self.template)
        return environment

    @contextmanager
    def planted(self, fault: Fault) -> Iterator[None]:
        """Plant the fault, and remove it when the block ends.

        Raises BadFault.
        """
        path = self.root / fault.file
        if not path.is_file():
            raise BadFault(f"{fault.id}: there is no file {fault.file}.")
        sound = path.read_text()
        faulty = fault.plant_in(sound)
        try:
            _write(path, faulty)
            yield
        finally:
            _write(path, sound)


@contextmanager
def scratch_copy(repository: Path) -> Iterator[Scratch]:
    """Make a copy, and remove it afterwards.

    Raises BadFault if Python would not import from it.
    """
    with tempfile.TemporaryDirectory(prefix="caret-faults-") as folder:
        scratch = Scratch(Path(folder).resolve() / "tree")
        _copy(repository, scratch.root)
        _require_imports(scratch)
        yield scratch


@contextmanager
def home_template(scratch: Scratch) -> Iterator[Path]:
    """Make a home folder with a migrated database, and remove it afterwards.

    Test sessions copy this folder instead of migrating a new database.
    """
    with tempfile.TemporaryDirectory(prefix="caret-faults-") as folder:
        template = Path(folder) / "home"
        subprocess.run(
            [sys.executable, "-m", "tests.stack.template", str(template)],
            cwd=scratch.root,
            env=scratch.environment,
            check=True,
        )
        yield template


def _copy(repository: Path, root: Path) -> None:
    file_list = subprocess.run(
        ["git", "ls-files", "-z"], cwd=repository, capture_output=True, text=True, check=True
    )
    for name in filter(None, file_list.stdout.split("\0")):
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(repository / name, target, follow_symlinks=False)
    virtual_environment = repository / ".venv"
    if virtual_environment.exists():
        (root / ".venv").symlink_to(virtual_environment.resolve())


def _require_imports(scratch: Scratch) -> None:
    """Check that PYTHONPATH takes precedence over the original tree, which is installed.

    Raises BadFault.
    """
    process = subprocess.run(
        [sys.executable, "-c", _PRINT_PACKAGE_PATHS],
        cwd="/",
        env=scratch.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    if process.stdout.count(str(scratch.root)) < len(_PACKAGES):
        raise BadFault(f"Python does not import from the copy: {process.stdout}")


def _write(path: Path, text: str) -> None:
    path.write_text(text)
    if path.suffix == ".py":
        # Python uses a compiled file if the size and the time (in whole seconds) of the source are
        # unchanged. Two writes in the same second may have the same size.
        Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)
