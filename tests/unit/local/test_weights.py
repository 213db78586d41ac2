"""Incomplete weights of a model are rejected, before an engine spends minutes on loading them."""

from pathlib import Path

import pytest

from caret.foundation.environment import BadSetting
from caret.local.engines.engine import DEMO_MODEL, engine_from_environment

WEIGHTS = (DEMO_MODEL / "model.safetensors").read_bytes()
# The file begins with the length of its header: eight bytes, little-endian.
DAMAGED = {
    "half of the file": (
        WEIGHTS[: len(WEIGHTS) // 2],
        f"bytes, but its header lists {len(WEIGHTS)}",
    ),
    "all but one byte": (WEIGHTS[:-1], f"has {len(WEIGHTS) - 1} bytes"),
    "half of the header": (WEIGHTS[:100], "not a complete file"),
    "nothing": (b"", "not a complete file"),
    "a pointer of Git LFS": (b"version https://git-lfs.github.com/spec/v1\n", "not a complete"),
    "a list as the header": (b"\2\0\0\0\0\0\0\0[]", "not a complete file"),
    "no offsets": (b'\x19\0\0\0\0\0\0\0{"a":{"data_offsets":[]}}', "not a complete file"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_weights_are_rejected(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    data, sentence = DAMAGED[name]
    (tmp_path / "model.safetensors").write_bytes(data)
    monkeypatch.setenv("CARET_MODEL", str(tmp_path))

    with pytest.raises(BadSetting, match=sentence):
        engine_from_environment(8402)


def test_complete_weights_are_accepted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(WEIGHTS)
    monkeypatch.setenv("CARET_MODEL", str(tmp_path))

    assert engine_from_environment(8402).model.is_folder
