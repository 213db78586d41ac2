"""The file with the pools of engines, which `make up` writes and reads."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caret.foundation.environment import BadSetting
from caret.local.engines.pools_file import (
    LocalPool,
    ReplicaEntry,
    read_pools,
    render_pools,
    write_pools,
)


def test_one_engine_serves_both_tiers() -> None:
    text = render_pools(
        model="demo", tokenizer="/models/demo", max_context_tokens=4608, replicas=["http://h:1"]
    )

    assert tomllib.loads(text) == {
        "pools": [
            {
                "name": f"demo-{tier}",
                "tier": tier,
                "model": "demo",
                "tokenizer": "/models/demo",
                "max_context_tokens": 4608,
                "replicas": ["http://h:1"],
            }
            for tier in ("fast", "quality")
        ]
    }


def test_each_tier_may_have_an_engine_of_its_own() -> None:
    replicas: dict[str, list[ReplicaEntry]] = {
        "fast": [{"url": "http://h:1", "max_num_seqs": 8}],
        "quality": ["http://h:2"],
    }

    text = render_pools(model="m", tokenizer="t", max_context_tokens=1, replicas=replicas)

    pools = tomllib.loads(text)["pools"]
    assert {pool["tier"]: pool["replicas"] for pool in pools} == replicas


@given(folder=st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_any_folder_name_is_preserved(folder: str) -> None:
    text = render_pools(model="m", tokenizer=folder, max_context_tokens=1, replicas=["http://h:1"])

    assert tomllib.loads(text)["pools"][0]["tokenizer"] == folder


def test_written_pools_can_be_read(tmp_path: Path) -> None:
    file = tmp_path / "pools.toml"
    text = render_pools(model="m", tokenizer="t", max_context_tokens=1, replicas=["http://h:1"])

    write_pools(file, text)

    assert read_pools(file) == [
        LocalPool(name="m-fast", tier="fast", replicas=("http://h:1",)),
        LocalPool(name="m-quality", tier="quality", replicas=("http://h:1",)),
    ]


def test_further_fields_of_a_replica_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "pools.toml"
    table: dict[str, str | int] = {"url": "http://h:1", "speculation": "suffix", "limit": 0}
    replicas: list[ReplicaEntry] = [table, "http://h:2"]

    write_pools(
        file, render_pools(model="m", tokenizer="t", max_context_tokens=1, replicas=replicas)
    )

    assert tomllib.loads(file.read_text())["pools"][0]["replicas"] == replicas
    assert read_pools(file)[0].replicas == ("http://h:1", "http://h:2")


@pytest.mark.parametrize(
    "text",
    [b"", b"pools = 3", b"[[pools]]\nname = 'a'", b"not toml", b"\xff"],
    ids=["empty", "no list", "no tier", "no TOML", "no UTF-8"],
)
def test_the_error_for_an_invalid_pools_file_names_the_setting(tmp_path: Path, text: bytes) -> None:
    file = tmp_path / "pools.toml"
    file.write_bytes(text)

    with pytest.raises(BadSetting, match="CARET_POOLS_FILE"):
        read_pools(file)


def test_the_error_for_a_missing_pools_file_names_the_setting(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="CARET_POOLS_FILE"):
        read_pools(tmp_path / "absent.toml")
