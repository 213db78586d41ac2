"""The bundle of the playground, a page of the console, equals a fresh build.

The build needs the playground's sources and its npm lock file.
"""

import shutil
import subprocess

import pytest

from caret.local.paths import REPOSITORY

pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm"),
]
_BUILD_S = 180


def test_the_bundle_equals_a_fresh_build() -> None:
    done = subprocess.run(
        [str(REPOSITORY / "platform" / "scripts" / "build_playground"), "--check"],
        capture_output=True,
        text=True,
        timeout=_BUILD_S,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
