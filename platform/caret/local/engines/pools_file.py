"""The pools file (TOML) that `up` writes for its own engines."""

import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from caret.foundation.environment import BadSetting

ReplicaEntry = str | Mapping[str, str | int]  # its URL, or the long form of the entry
Value = str | int | list[ReplicaEntry] | Mapping[str, str | int]
Replicas = Sequence[ReplicaEntry] | Mapping[str, Sequence[ReplicaEntry]]  # by tier


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

    A sequence of `replicas` serves both tiers. `has_token_healing` is False for synthetic engines,
    which ignore their prompts. `additions_from` lists the hosts on which operators may add
    replicas.
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
            {"name": f"{model}-{tier}", "tier": tier, **common_values, "replicas": list(addresses)}
        )
        for tier, addresses in replicas.items()
    )


def write_pools(file: Path, text: str) -> None:
    draft = file.with_name(file.name + ".new")
    draft.write_text(text)
    os.replace(draft, file)  # noqa: PTH105  # readers see the old or the new file, never a part


def read_pools(file: Path) -> list[LocalPool]:
    """Read only name, tier and replicas, for the summary that `up` prints.

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
    except (OSError, KeyError, TypeError, tomllib.TOMLDecodeError) as error:
        raise BadSetting(f"CARET_POOLS_FILE: {file} is not a valid pools file: {error}.") from error


def _read_url(replica: str | dict[str, str]) -> str:
    return replica if isinstance(replica, str) else replica["url"]


def _render_pool(values: Mapping[str, Value]) -> str:
    lines = [f"{name} = {_to_toml(value)}" for name, value in values.items()]
    return "\n".join(["[[pools]]", *lines, ""])


def _to_toml(value: Value) -> str:
    """Return a value in TOML: JSON, except for one character and without surrogate pairs."""
    if isinstance(value, list):
        return f"[{', '.join(_to_toml(item) for item in value)}]"
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{name} = {_to_toml(item)}' for name, item in value.items())} }}"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
