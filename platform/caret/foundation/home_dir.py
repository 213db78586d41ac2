"""Where the embedded installation keeps its things: one folder, CARET_HOME."""

import os
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).resolve().parents[3]


def home_folder() -> Path:
    """CARET_HOME, or `.caret` in the repository; an empty setting is no setting."""
    return Path(os.environ.get("CARET_HOME") or REPOSITORY / ".caret").absolute()
