"""The KV tier: its settings, its servers, and the engine arguments and pool entries for it.

It keeps cached prompts when an engine restarts. It consists of LMCache and a KV store (Valkey).
"""

import importlib.util
import json
from pathlib import Path

import pytest

from caret.foundation.environment import BadSetting
from caret.local.engines import kv_tier
from caret.local.engines.kv_tier import (
    KvTierSettings,
    build_kv_tier_services,
    lmcache_command,
    make_store_settings,
)
from caret.local.engines.profiles import Hardware
from caret.local.errors import MissingFeature
from caret.local.installation import describe_step, list_step_titles
from caret.local.paths import EmbeddedPaths
from caret.local.ports import ports_from_environment
from caret.local.up_settings import settings_from_environment
from inference.pools.cache_isolation import SALTED_CONNECTORS


def _tier(hardware: Hardware = Hardware.CPU) -> KvTierSettings:
    ports = ports_from_environment()
    return KvTierSettings(
        size_gb=2,
        hardware=hardware,
        port=ports.kv_tier,
        http_port=ports.kv_tier_http,
        store_port=ports.kv_store,
    )


def test_there_is_no_kv_tier_by_default() -> None:
    settings = settings_from_environment()

    assert settings.kv_tier is None
    assert "kv_connector" not in settings.engines[0].entry
    assert "LMCache" not in list_step_titles(settings)


def test_the_engines_use_the_tier_through_an_allowed_connector(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CARET_KV_TIER_GB", "1")
    # A tier of 1 GB needs 3 GB: this size for each of its two servers, and one GB more.
    monkeypatch.setattr(kv_tier, "read_free_bytes", lambda: 3 * 2**30)

    settings = settings_from_environment()

    assert settings.kv_tier is not None
    assert set(settings.kv_tier.ports) <= set(settings.needed_ports)
    assert settings.engines[0].entry["kv_connector"] in SALTED_CONNECTORS
    flag, value = settings.engines[0].kv_tier_arguments
    assert flag == "--kv-transfer-config"
    address = json.loads(value)["kv_connector_extra_config"]
    assert address == {"lmcache.mp.host": "tcp://127.0.0.1", "lmcache.mp.port": 8407}
    titles = list_step_titles(settings)
    assert titles[:2] == ("KV store", "LMCache")
    assert all(describe_step(title) for title in titles[:2])


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"CARET_KV_TIER_GB": "some"}, "whole number from 0"),
        ({"CARET_POOLS_FILE": "/etc/pools.toml"}, "CARET_POOLS_FILE names your own engines"),
        (
            {"CARET_ENGINE_ARGS": "--kv-transfer-config.kv_connector OffloadingConnector"},
            r"CARET_ENGINE_ARGS names another one \(OffloadingConnector\)",
        ),
        ({"CARET_ENGINE_ARGS": "--kv-offloading-size 4"}, "names another one"),
        # The KV store and LMCache need this size each, and one GB more.
        ({"CARET_KV_TIER_GB": "100"}, "need 201 GB of free memory together, .* has 3.0 GB"),
    ],
)
def test_a_kv_tier_that_cannot_start_is_rejected(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], sentence: str
) -> None:
    monkeypatch.setattr(kv_tier, "read_free_bytes", lambda: 3 * 2**30)
    for name, value in ({"CARET_KV_TIER_GB": "1"} | variables).items():
        monkeypatch.setenv(name, value)

    with pytest.raises(BadSetting, match=sentence):
        settings_from_environment()


def test_without_lmcache_the_error_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    with pytest.raises(MissingFeature, match="`make up` installs it"):
        build_kv_tier_services(
            _tier(), paths=EmbeddedPaths(tmp_path), environment={}, tag_environment={}
        )


def test_cached_prompts_are_bounded_and_never_written_to_the_disk() -> None:
    settings = make_store_settings(_tier())

    assert settings["appendonly"] == "no"
    assert "save" not in settings  # so EmbeddedValkey's own value applies: no snapshot files
    assert settings["maxmemory"] == "2gb"
    assert settings["maxmemory-policy"] == "allkeys-lru"
    assert settings["bind"] == "127.0.0.1"


@pytest.mark.parametrize("hardware", list(Hardware))
def test_lmcache_listens_on_the_loopback_address_and_does_not_use_cuda_on_a_cpu(
    hardware: Hardware,
) -> None:
    command = " ".join(lmcache_command(_tier(hardware)))

    assert "--host 127.0.0.1 --port 8407 --http-host 127.0.0.1 --http-port 8408" in command
    # In this transfer mode, LMCache does not read the engine's memory through CUDA.
    assert ("engine_driven" in command) is (hardware is Hardware.CPU)
