"""Sources of editor plugins that exist only as public repositories.

The environment variable EDITOR_PLUGINS names a folder with the sources. Without the variable,
the sources are cloned. If they cannot be cloned, the tests are skipped.
"""

import os
import subprocess
from pathlib import Path
from typing import Final

import pytest

_CLONE_TIMEOUT_S: Final = 60
_GITHUB_URL: Final = "https://github.com"


def find_plugin(repository: str, folder: Path) -> Path:
    """Return the folder of a plugin's sources. If necessary, clone them into `folder`."""
    name = repository.rpartition("/")[2]
    sources = os.environ.get("EDITOR_PLUGINS")
    if sources is not None:
        if not (Path(sources) / name).is_dir():
            pytest.skip(f"EDITOR_PLUGINS has no folder {name}")
        return Path(sources) / name
    command = ["git", "clone", "--quiet", "--depth", "1", f"{_GITHUB_URL}/{repository}", name]
    try:
        subprocess.run(
            command, cwd=folder, capture_output=True, check=True, timeout=_CLONE_TIMEOUT_S
        )
    except (OSError, subprocess.SubprocessError):
        pytest.skip(f"{repository} cannot be cloned here; name its folder in EDITOR_PLUGINS")
    return folder / name
