"""The folder of the local installation, CARET_HOME."""

import os
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).resolve().parents[3]


def find_home_folder() -> Path:
    """Return CARET_HOME, or `.caret` in the repository if CARET_HOME is unset or empty."""
    return Path(os.environ.get("CARET_HOME") or REPOSITORY / ".caret").absolute()
