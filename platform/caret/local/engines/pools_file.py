"""The pools file (TOML) that `up` writes for its own engines."""

import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from caret.foundation.environment import BadSetting

ReplicaEntry = str | Mapping[str, str | int]  # the replica's URL, or a table with the key `url`
Value = str | int | list[ReplicaEntry] | Mapping[str, str | int]  # of a key in the file
Replicas = Sequence[ReplicaEntry] | Mapping[str, Sequence[ReplicaEntry]]  # for both tiers | by tier


@dataclass(frozen=True, slots=True)
class LocalPool:
    name: str
    tier: str
    replicas: tuple[str, ...]  # base URLs


def render_pools(
    *,
    model: str,
    tokenizer: str,
    max_context_tokens: int,
    replicas: Replicas,
    has_token_healing: bool = True,
    additions_from: Sequence[str] = (),
) -> str:
    """Return the text of the pools file.

    If `replicas` is a sequence, its replicas serve both tiers. `has_token_healing` is False for
    synthetic engines, which ignore their prompts. `additions_from` lists the hosts on which
    operators may add replicas.
    """
    common_values: dict[str, Value] = {
        "model": model,
        "tokenizer": tokenizer,
        "max_context_tokens": max_context_tokens,
    }
    if not has_token_healing:
        common_values["has_token_healing"] = False
    if additions_from:
        common_values["additions_from"] = list(additions_from)
    if not isinstance(replicas, Mapping):
        replicas = {"fast": replicas, "quality": replicas}
    return "\n".join(
        _render_pool(
            {"name": f"{model}-{tier}", "tier": tier, **common_values, "replicas": list(entries)}
        )
        for tier, entries in replicas.items()
    )


def write_pools(file: Path, text: str) -> None:
    """Write the file atomically."""
    draft = file.with_name(file.name + ".new")
    draft.write_text(text)
    os.replace(draft, file)  # noqa: PTH105  # readers see the old or the new file


def read_pools(file: Path) -> list[LocalPool]:
    """Read the name, tier and replicas of each pool, for the summary that `up` prints.

    Raises BadSetting.
    """
    try:
        entries = tomllib.loads(file.read_text())["pools"]
        return [
            LocalPool(
                name=entry["name"],
                tier=entry["tier"],
                replicas=tuple(_read_url(replica) for replica in entry.get("replicas", ())),
            )
            for entry in entries
        ]
    except (OSError, KeyError, TypeError, UnicodeError, tomllib.TOMLDecodeError) as error:
        raise BadSetting(f"CARET_POOLS_FILE: {file} is not a valid pools file: {error}.") from error


def _read_url(replica: str | dict[str, str]) -> str:
    return replica if isinstance(replica, str) else replica["url"]


def _render_pool(values: Mapping[str, Value]) -> str:
    lines = [f"{name} = {_to_toml(value)}" for name, value in values.items()]
    return "\n".join(["[[pools]]", *lines, ""])


def _to_toml(value: Value) -> str:
    """Return a value in TOML.

    Strings are written as in JSON, except that DEL is escaped, because TOML does not allow it
    unescaped. Characters beyond ASCII are not escaped, because TOML has no surrogate pairs.
    """
    if isinstance(value, list):
        return f"[{', '.join(_to_toml(item) for item in value)}]"
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{name} = {_to_toml(item)}' for name, item in value.items())} }}"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
