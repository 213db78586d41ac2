"""Where the parts of a prompt stand, for one model family."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from inference.context.fim import Family, Order
from inference.context.prompt import Parts
from inference.context.tokens import Tokens


@dataclass(frozen=True, slots=True)
class Markers:
    """A family's markers as token ids; each is a list of one, or empty where there is none."""

    begin: list[int]
    prefix: list[int]
    suffix: list[int]
    middle: list[int]


def markers_of(family: Family, tokens: Tokens) -> Markers:
    return Markers(
        begin=_ids(tokens, family.begin),
        prefix=_ids(tokens, family.prefix),
        suffix=_ids(tokens, family.suffix),
        middle=_ids(tokens, family.middle),
    )


def stop_token_ids(family: Family, tokens: Tokens) -> list[int]:
    names = (
        *(family.prefix, family.suffix, family.middle),
        *(family.file_separator, family.repository),
        *family.ends,
    )
    return sorted({identifier for name in names for identifier in _ids(tokens, name)})


def lay_out(order: Order, markers: Markers, parts: Parts) -> list[int]:
    """The whole prompt: begin, other files, then prefix and suffix in the family's order."""
    return [*markers.begin, *parts.files, *_ORDERS[order](markers, parts)]


def _psm(markers: Markers, parts: Parts) -> list[int]:
    return [
        *(*markers.prefix, *parts.prefix),
        *(*markers.suffix, *parts.suffix),
        *markers.middle,
    ]


def _spm(markers: Markers, parts: Parts) -> list[int]:
    return [
        *(*markers.suffix, *parts.suffix),
        *(*markers.prefix, *parts.prefix),
        *markers.middle,
    ]


def _spm_variant_2(markers: Markers, parts: Parts) -> list[int]:
    return [
        *markers.prefix,
        *(*markers.suffix, *parts.suffix),
        *(*markers.middle, *parts.prefix),
    ]


_ORDERS: Final[dict[Order, Callable[[Markers, Parts], list[int]]]] = {
    Order.PSM: _psm,
    Order.SPM: _spm,
    Order.SPM_VARIANT_2: _spm_variant_2,
}


def _ids(tokens: Tokens, name: str | None) -> list[int]:
    if name is None:
        return []
    identifier = tokens.token_id(name)
    return [] if identifier is None else [identifier]
