"""CARET_ENGINE_ARGS: arguments that leak data are rejected in every spelling that vLLM accepts.

Suffix decoding with a cache, and most KV connectors, would let tenants share cached data.
`parse_engine_arguments` gets the arguments and the environment of the engine.
"""

import pytest

from caret.foundation.environment import BadSetting
from caret.local.engines.engine_args import (
    NO_ENGINE_ARGUMENTS,
    drop_speculation,
    parse_engine_arguments,
)
from inference.pools.cache_isolation import SpeculationMethod

SUFFIX = '{"method":"suffix"}'
LMCACHE = '{"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both"}'

# Arguments that let tenants share cached data, or that hide whether they do.
LEAKS = {
    "suffix decoding in vLLM's notation": ("--speculative-config", SUFFIX),
    "suffix decoding with an equals sign": (f"--speculative-config={SUFFIX}",),
    "suffix decoding with underscores": ("--speculative_config", SUFFIX),
    "suffix decoding as -sc": ("-sc", SUFFIX),
    "suffix decoding by a shortened option": ("--speculative", SUFFIX),
    "suffix decoding by its fields": ("--speculative-config.method", "suffix"),
    "suffix decoding by another option": ("--spec-method", "suffix"),
    "suffix decoding with a cache of five requests": (
        "--speculative-config",
        '{"method":"suffix","suffix_decoding_max_cached_requests":5}',
    ),
    "a connector": ("--kv-transfer-config", LMCACHE),
    "a connector by its fields": ("--kv-transfer-config.kv_connector", "HF3FSKVConnector"),
    "a connector by a shortened option": (f"--kv-transfer={LMCACHE}",),
    "a custom connector": (
        "--kv-transfer-config",
        '{"kv_connector":"OffloadingConnector","kv_connector_module_path":"own"}',
    ),
    "a connector that combines others": (
        "--kv-transfer-config",
        '{"kv_connector":"MultiConnector"}',
    ),
    "no connector name": ("--kv-transfer-config", "{}", "--kv-transfer-config.kv_role", "x"),
    "two connectors": (
        *("--kv-transfer-config", '{"kv_connector":"LMCacheMPConnector"}'),
        *("--kv-offloading-size", "4"),
    ),
    "a cache size that is no number": (
        "--speculative-config",
        '{"method":"suffix","suffix_decoding_max_cached_requests":"none"}',
    ),
    "a settings file": ("--config", "engine.yaml"),
    "a settings file with an equals sign": ("--config=engine.yaml",),
    "not JSON": ("--speculative-config", "suffix"),
    "not an object": ("--speculative-config", "7"),
}
BAD_NUMBERS = ["0", "-1", "many", ""]


@pytest.mark.parametrize("name", LEAKS)
def test_arguments_that_leak_data_are_rejected(name: str) -> None:
    with pytest.raises(BadSetting, match="CARET_ENGINE_ARGS"):
        parse_engine_arguments(LEAKS[name], {})


def test_offloading_with_an_untested_connector_is_rejected() -> None:
    arguments = ("--kv-offloading-size", "4")
    parse_engine_arguments(arguments, {})  # with OffloadingConnector, vLLM's default

    with pytest.raises(BadSetting, match="SimpleCPUOffloadConnector"):
        parse_engine_arguments(arguments, {"VLLM_USE_SIMPLE_KV_OFFLOAD": "1"})


@pytest.mark.parametrize("name", ["OffloadingConnector", "LMCacheMPConnector"])
def test_connectors_whose_keys_contain_the_cache_salt_are_allowed(name: str) -> None:
    parse_engine_arguments(("--kv-transfer-config", f'{{"kv_connector":"{name}"}}'), {})


@pytest.mark.parametrize(
    ("arguments", "speculation"),
    [
        (("--seed", "7", "--max-num-seqs=4"), None),
        (("--spec-method.x", "y"), None),  # a part of an option that Caret does not know
        (("--speculative-config", '{"method":"ngram","num_speculative_tokens":3}'), "ngram"),
        (("--spec-model", "/models/draft", "--spec-tokens", "3"), "draft"),
        (("--speculative-config.model", "/models/draft"), "draft"),
        (
            (
                "--speculative-config.method=suffix",
                "--speculative-config.suffix_decoding_max_cached_requests=0",
            ),
            "suffix",
        ),
    ],
)
def test_the_speculation_method_is_detected(
    arguments: tuple[str, ...], speculation: str | None
) -> None:
    facts = parse_engine_arguments(arguments, {})

    assert facts.speculation == (SpeculationMethod(speculation) if speculation else None)


@pytest.mark.parametrize("number", BAD_NUMBERS)
def test_a_batch_size_that_is_no_positive_number_is_rejected(number: str) -> None:
    with pytest.raises(BadSetting, match="--max-num-seqs"):
        parse_engine_arguments(("--max_num_seqs", number), {})


def test_the_last_of_several_batch_sizes_counts() -> None:
    arguments = ("--max-num-seqs", "8", "--max-num-batched-tokens", "512", "--max-num-seqs=4")

    assert parse_engine_arguments(arguments, {}).max_num_seqs == 4


def test_without_arguments_no_property_of_the_engine_is_set() -> None:
    assert parse_engine_arguments((), {}) == NO_ENGINE_ARGUMENTS


@pytest.mark.parametrize(
    ("arguments", "connector"),
    [
        (
            (
                *("--kv-transfer-config.kv_connector", "LMCacheMPConnector"),
                *("--kv-transfer-config.kv_role", "kv_both"),
            ),
            "LMCacheMPConnector",
        ),
        (("--kv-offloading-size", "4"), "OffloadingConnector"),
        ((), None),
    ],
)
def test_the_connector_to_a_kv_tier_is_read(
    arguments: tuple[str, ...], connector: str | None
) -> None:
    assert parse_engine_arguments(arguments, {}).kv_connector == connector


@pytest.mark.parametrize(
    "speculation",
    [
        ("--speculative-config", '{"method":"ngram"}'),
        ('--speculative_config={"method":"ngram"}',),
        ("--speculative-config.method", "ngram", "--spec-model=draft"),
        ("-sc", '{"method":"ngram"}'),
        ("--spec-method", "ngram", "--spec-tokens", "3"),
    ],
)
def test_speculation_can_be_dropped_from_the_arguments(speculation: tuple[str, ...]) -> None:
    arguments = ("--seed", "7", *speculation, "--max-num-seqs", "4")

    assert parse_engine_arguments(arguments, {}).speculation is not None
    assert drop_speculation(arguments) == ("--seed", "7", "--max-num-seqs", "4")
