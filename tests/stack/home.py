"""A home of this session's own, and the environment in which Django is set up for it."""

import os
import tempfile
from pathlib import Path

from caret.embedded.credentials import write_credentials
from caret.embedded.paths import EmbeddedPaths


def make_home() -> EmbeddedPaths:
    """A fresh CARET_HOME, deaf to whatever the person's shell says about Caret."""
    for name in [name for name in os.environ if name.startswith("CARET_")]:
        del os.environ[name]
    for name in ("DATABASE_URL", "REDIS_URL"):
        os.environ.pop(name, None)
    paths = EmbeddedPaths(Path(tempfile.mkdtemp(prefix="caret-test-")))
    write_credentials(paths)
    os.environ["CARET_HOME"] = str(paths.home)
    os.environ["CARET_OPERATORS_PATH"] = "operators"  # else there are no such pages
    os.environ["DJANGO_SETTINGS_MODULE"] = "caret.settings"
    return paths
