"""The home of a test session, and the environment in which Django is set up for it."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

from caret.local.databases.credentials import write_credentials
from caret.local.paths import EmbeddedPaths
from tests.stack.seed import SEED_VARIABLE

# A home with a migrated database, made by `tests.stack.template`, so that sessions start faster.
HOME_TEMPLATE_VARIABLE: Final = "TEST_HOME_TEMPLATE"


def make_home() -> EmbeddedPaths:
    """Make a fresh CARET_HOME, and set this process's environment for it.

    Caret's settings in the user's environment are removed from the environment of this process.
    """
    for name in list(os.environ):
        if name.startswith("CARET_") and name != SEED_VARIABLE:
            del os.environ[name]
    for name in ("DATABASE_URL", "REDIS_URL"):
        os.environ.pop(name, None)
    paths = EmbeddedPaths(Path(tempfile.mkdtemp(prefix="caret-test-")))
    if template := os.environ.get(HOME_TEMPLATE_VARIABLE):
        shutil.copytree(template, paths.home, dirs_exist_ok=True)
    write_credentials(paths)
    os.environ["CARET_HOME"] = str(paths.home)
    os.environ["CARET_OPERATOR_ADMIN_PATH"] = "operators"  # without it, operators have no pages
    os.environ["CARET_SELF_SIGN_UP"] = "True"  # the sign-up page exists only with this
    os.environ["DJANGO_SETTINGS_MODULE"] = "caret.settings"
    return paths
