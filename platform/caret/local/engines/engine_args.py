"""Checks an engine's arguments for options that affect the gateway or the isolation of tenants.

vLLM accepts such an option in several forms: as JSON, in parts (`--name.part value`), with
underscores instead of hyphens, and with an abbreviated name.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from caret.foundation.environment import BadSetting
from inference.pools.cache_isolation import SpeculationMethod, require_isolated_cache

_SPECULATION: Final = "--speculative-config"
_CONNECTOR: Final = "--kv-transfer-config"
_OFFLOADING: Final = "--kv-offloading-size"
_METHOD: Final = "--spec-method"
_MODEL: Final = "--spec-model"
_TOKENS: Final = "--spec-tokens"
_SPECULATION_OPTIONS: Final = (_SPECULATION, _METHOD, _MODEL, _TOKENS)
_FILE: Final = "--config"
_SEQUENCES: Final = "--max-num-seqs"
_MAX_CACHED_REQUESTS: Final = "suffix_decoding_max_cached_requests"  # in --speculative-config
# The length of each option's shortest abbreviation. Shorter ones are ambiguous in vLLM, or mean
# another option.
_MIN_CHARS: Final = {
    _SPECULATION: len("--specu"),
    _CONNECTOR: len("--kv-t"),
    _OFFLOADING: len("--kv-offloading-s"),
    _METHOD: len("--spec-me"),
    _MODEL: len("--spec-mo"),
    _TOKENS: len("--spec-t"),
    _FILE: len("--config"),
    _SEQUENCES: len("--max-num-se"),
}
# Methods of speculative decoding that use no draft model.
_METHODS: Final = {
    "ngram": SpeculationMethod.NGRAM,
    "[ngram]": SpeculationMethod.NGRAM,
    "ngram_gpu": SpeculationMethod.NGRAM,
    "suffix": SpeculationMethod.SUFFIX,
}


@dataclass(frozen=True, slots=True)
class EngineArguments:
    """The values of the options that are checked."""

    speculation: SpeculationMethod | None = None  # None: no speculative decoding
    max_cached_requests: int | None = None  # of suffix decoding; None: not set
    max_num_seqs: int | None = None  # requests in a batch; None: not set
    kv_connector: str | None = None  # class or module of the connector to a KV tier; None: no tier


NO_ENGINE_ARGUMENTS: Final = EngineArguments()


def parse_engine_arguments(
    arguments: Sequence[str], environment: Mapping[str, str]
) -> EngineArguments:
    """Parse and check the arguments. `environment` contains the engine's environment variables.

    Raises BadSetting for an invalid value, for `--config`, and for settings that would let a tenant
    find another tenant's data in a cache.
    """
    try:
        settings = _parse_settings(arguments)
    except ValueError as error:
        raise BadSetting(
            "CARET_ENGINE_ARGS: the value of an argument is not a JSON object. Put single quotes"
            " around JSON, such as --speculative-config '{...}'."
        ) from error
    if _FILE in settings:
        raise BadSetting(
            "CARET_ENGINE_ARGS: --config is not allowed. List the arguments themselves."
        )
    engine_arguments = replace(
        _read_speculation(settings),
        max_num_seqs=_read_sequences(settings),
        kv_connector=_read_connector(settings, environment),
    )
    try:
        require_isolated_cache(
            speculation=engine_arguments.speculation,
            max_cached_requests=engine_arguments.max_cached_requests,
            kv_connector=engine_arguments.kv_connector,
        )
    except BadSetting as error:
        raise BadSetting(f"CARET_ENGINE_ARGS: {error}") from error
    return engine_arguments


def drop_speculation(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments without the options for speculative decoding and their values."""
    other_arguments: list[str] = []
    is_value = False  # whether the next argument is the value of a dropped option
    for argument in arguments:
        option, equals_sign, _ = argument.partition("=")
        is_dropped = is_value or _parse_option(option)[0] in _SPECULATION_OPTIONS
        if not is_dropped:
            other_arguments.append(argument)
        # The next argument is a value if this one is a dropped option without "=".
        is_value = is_dropped and not is_value and not equals_sign
    return tuple(other_arguments)


def _read_speculation(settings: Mapping[str, dict[str, Any]]) -> EngineArguments:
    """Return the method of speculative decoding and its cache size, without the other values.

    In `settings`, the part "" is the value of the option itself. Raises BadSetting.
    """
    # vLLM has separate options for these parts of --speculative-config.
    parts = {_METHOD: "method", _MODEL: "model"}
    separate_parts = {
        part: settings[name][""] for name, part in parts.items() if "" in settings.get(name, {})
    }
    config = settings.get(_SPECULATION, {}) | separate_parts
    if not config:
        return NO_ENGINE_ARGUMENTS
    method = config.get("method") or config.get("model")  # vLLM accepts "ngram" as a model, too
    cached = config.get(_MAX_CACHED_REQUESTS)
    return EngineArguments(
        speculation=_METHODS.get(str(method), SpeculationMethod.DRAFT),
        max_cached_requests=(
            None if cached is None else _parse_count(cached, name=_MAX_CACHED_REQUESTS, low=0)
        ),
    )


def _read_sequences(settings: Mapping[str, dict[str, Any]]) -> int | None:
    """Return the maximum number of requests in a batch; None if it is not set.

    Raises BadSetting.
    """
    if _SEQUENCES not in settings:
        return None
    return _parse_count(settings[_SEQUENCES].get("", ""), name=_SEQUENCES, low=1)


def _parse_count(value: object, *, name: str, low: int) -> int:
    """Parse a whole number from `low`. Raises BadSetting."""
    text = str(value)
    if not (text.isascii() and text.isdigit() and int(text) >= low):
        raise BadSetting(f"CARET_ENGINE_ARGS: {name} is {text!r}; write a whole number from {low}.")
    return int(text)


def _read_connector(
    settings: Mapping[str, dict[str, Any]], environment: Mapping[str, str]
) -> str | None:
    """Return the class or module of the connector; None if there is none.

    Raises BadSetting.
    """
    if _CONNECTOR in settings and _OFFLOADING in settings:
        # vLLM would replace the connector of --kv-transfer-config without an error.
        raise BadSetting(
            f"CARET_ENGINE_ARGS: {_CONNECTOR} and {_OFFLOADING} both choose a KV connector. Remove"
            " one of the two."
        )
    if _CONNECTOR in settings:
        config = settings[_CONNECTOR]
        # With a module path, the connector is the operator's own class. Its name may equal the name
        # of an allowed connector, so the path identifies it.
        module_path = config.get("kv_connector_module_path")
        return str(module_path or config.get("kv_connector"))
    if _OFFLOADING in settings:
        is_simple = environment.get("VLLM_USE_SIMPLE_KV_OFFLOAD", "0") != "0"
        return "SimpleCPUOffloadConnector" if is_simple else "OffloadingConnector"
    return None


def _parse_settings(arguments: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the values of each relevant option, by part.

    The keys of a JSON object are parts, too. The part "" is the value of an option without parts.
    Raises ValueError.
    """
    settings: dict[str, dict[str, Any]] = defaultdict(dict)
    for name, part, value in _iterate_options(arguments):
        if part:
            settings[name][part] = value
        elif name in (_SPECULATION, _CONNECTOR):
            settings[name] |= _parse_object(value)
        else:
            settings[name][""] = value
    return settings


def _parse_object(text: str) -> dict[str, Any]:
    """Parse a JSON object. Raises ValueError for other text."""
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError(text)
    return value


def _iterate_options(arguments: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield each relevant argument as (option, part or "" for the whole option, value)."""
    for index, argument in enumerate(arguments):
        option, equals_sign, value = argument.partition("=")
        name, part = _parse_option(option)
        if name is not None:
            next_argument = arguments[index + 1] if index + 1 < len(arguments) else ""
            yield name, part, value if equals_sign else next_argument


def _parse_option(option: str) -> tuple[str | None, str]:
    """Return the option (None if it is not relevant) and its part ("" for the whole option)."""
    head, _, part = option.partition(".")
    return _find_option(head.replace("_", "-")), part


def _find_option(text: str) -> str | None:
    """Return the relevant option that `text` names or abbreviates; None if it names another."""
    if text == "-sc":  # vLLM's short form
        return _SPECULATION
    return next(
        (
            name
            for name, min_chars in _MIN_CHARS.items()
            if name.startswith(text) and len(text) >= min_chars
        ),
        None,
    )
