"""A home of this session's own, and the environment in which Django is set up for it."""

import os
import tempfile
from pathlib import Path

from caret.embedded.credentials import write_credentials
from caret.embedded.paths import EmbeddedPaths
from tests.stack.seed import SEED_VARIABLE


def make_home() -> EmbeddedPaths:
    """Make a fresh CARET_HOME. Caret's settings in the user's environment are ignored."""
    for name in list(os.environ):
        if name.startswith("CARET_") and name != SEED_VARIABLE:
            del os.environ[name]
    for name in ("DATABASE_URL", "REDIS_URL"):
        os.environ.pop(name, None)
    paths = EmbeddedPaths(Path(tempfile.mkdtemp(prefix="caret-test-")))
    write_credentials(paths)
    os.environ["CARET_HOME"] = str(paths.home)
    os.environ["CARET_OPERATORS_PATH"] = "operators"  # else there are no such pages
    os.environ["DJANGO_SETTINGS_MODULE"] = "caret.settings"
    return paths
