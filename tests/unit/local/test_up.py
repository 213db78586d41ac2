"""The check of `make up` that the disk has enough free space."""

from pathlib import Path

import pytest

from caret.local.errors import NoDiskSpace
from caret.local.up import require_room


def test_a_full_disk_is_rejected_with_the_space_needed(tmp_path: Path) -> None:
    with pytest.raises(NoDiskSpace, match=f"{tmp_path} has .* MB free; Caret needs") as exc_info:
        require_room(tmp_path, min_free_bytes=2**60)

    assert int(exc_info.value.exit_code) == 4  # the exit code for a full disk


def test_enough_free_space_is_accepted(tmp_path: Path) -> None:
    require_room(tmp_path, min_free_bytes=1)
