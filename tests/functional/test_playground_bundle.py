"""The committed bundle of the console's playground equals a fresh build.

The build reads the playground's sources and its npm lock file.
"""

import shutil
import subprocess

import pytest

from caret.local.paths import REPOSITORY

pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm"),
]
_BUILD_TIMEOUT_S = 180


def test_the_bundle_equals_a_fresh_build() -> None:
    process = subprocess.run(
        [str(REPOSITORY / "platform" / "scripts" / "build_playground"), "--check"],
        capture_output=True,
        text=True,
        timeout=_BUILD_TIMEOUT_S,
        check=False,
    )

    assert process.returncode == 0, process.stdout + process.stderr
