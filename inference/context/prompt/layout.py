"""Where the parts of a prompt stand, and which part of a text is one: as data, by name.

An engine's prefix cache hits as far as a prompt begins like an earlier one. So what stays put comes
first, what is being typed last, and what begins a window is chosen by its content:

    begin | repository | other files | what was found | suffix | prefix       "stable"
    `---- stays while a file is open ----------------'  `-- while one types

The other layouts are there to be compared with, in experiments and in the benchmark `typing`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from caret.foundation.environment import BadSetting
from inference.completion.segment import Piece, SegmentKind, joined
from inference.context.prompt.model_families import Family, Order
from inference.context.tokenization.tokenizer import Tokens


@dataclass(frozen=True, slots=True)
class Layout:
    name: str
    order: Order | None  # None: suffix first, in the way that suits the family best
    is_anchored: bool = True  # windows begin with lines chosen by content; False: they slide
    # Other files by path, so that an edit in one does not move the others; False: best nearest.
    sorts_files: bool = False
    # Whether the suffix begins with the next line while nothing but closing brackets and the like
    # follows the cursor: an editor writes and removes those with every other keystroke, and the
    # filter drops them where the completion repeats them.
    skips_closers: bool = False


DEFAULT_LAYOUT: Final = "stable"
LAYOUTS: Final = {
    layout.name: layout
    for layout in (
        Layout("stable", None, sorts_files=True, skips_closers=True),
        Layout("efim", Order.EFIM, sorts_files=True, skips_closers=True),
        Layout("spm", Order.SPM),
        Layout("spm2", Order.SPM_VARIANT_2),
        Layout("psm", Order.PSM),
        # What most tools do, to compare with.
        Layout("psm-sliding", Order.PSM, is_anchored=False),
        Layout("spm-sliding", Order.SPM, is_anchored=False),
    )
}


@dataclass(frozen=True, slots=True)
class Markers:
    """A family's markers as token ids; each is a list of one, or empty where there is none."""

    begin: list[int]
    prefix: list[int]
    suffix: list[int]
    middle: list[int]


@dataclass(frozen=True, slots=True)
class Parts:
    """What goes into a prompt, already within the budget, as token ids."""

    context: list[Piece]  # repository, other files, what was found
    suffix: list[int]
    prefix: list[int]
    typed: list[int]  # of the prefix what comes after the anchor; empty in orders without one


def layout_named(name: str) -> Layout:
    """Raises BadSetting."""
    if layout := LAYOUTS.get(name):
        return layout
    raise BadSetting(f"There is no layout {name}; there are {', '.join(LAYOUTS)}.")


def order_of(layout: Layout, family: Family) -> Order:
    """How a family's markers stand in a layout."""
    if family.middle is None:  # nothing else can be said without that marker
        return Order.SPM
    if layout.order is not None:
        return layout.order
    return Order.SPM_VARIANT_2 if family.order is Order.PSM else family.order


def ends_with_text(order: Order, family: Family) -> bool:
    """Whether the model writes right behind the prefix, with no marker between."""
    return family.middle is None or order in (Order.SPM_VARIANT_2, Order.EFIM)


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
    """The whole prompt."""
    return joined(pieces_of(order, markers, parts))


def pieces_of(order: Order, markers: Markers, parts: Parts) -> list[Piece]:
    """Begin, context, then prefix and suffix in the order."""
    return [_marker(markers.begin), *parts.context, *_ORDERS[order](markers, parts)]


def _psm(markers: Markers, parts: Parts) -> list[Piece]:
    return [
        *(_marker(markers.prefix), Piece(SegmentKind.PREFIX, parts.prefix)),
        *(_marker(markers.suffix), Piece(SegmentKind.SUFFIX, parts.suffix)),
        *(_marker(markers.middle), Piece(SegmentKind.PREFIX, parts.typed)),
    ]


def _spm(markers: Markers, parts: Parts) -> list[Piece]:
    return [
        *(_marker(markers.suffix), Piece(SegmentKind.SUFFIX, parts.suffix)),
        *(_marker(markers.prefix), Piece(SegmentKind.PREFIX, parts.prefix)),
        _marker(markers.middle),
    ]


def _spm_variant_2(markers: Markers, parts: Parts) -> list[Piece]:
    return [
        _marker(markers.prefix),
        *(_marker(markers.suffix), Piece(SegmentKind.SUFFIX, parts.suffix)),
        *(_marker(markers.middle), Piece(SegmentKind.PREFIX, parts.prefix)),
    ]


def _marker(token_ids: list[int]) -> Piece:
    return Piece(SegmentKind.MARKERS, token_ids)


_ORDERS: Final[dict[Order, Callable[[Markers, Parts], list[Piece]]]] = {
    Order.PSM: _psm,
    Order.EFIM: _psm,
    Order.SPM: _spm,
    Order.SPM_VARIANT_2: _spm_variant_2,
}


def _ids(tokens: Tokens, name: str | None) -> list[int]:
    if name is None:
        return []
    identifier = tokens.token_id(name)
    return [] if identifier is None else [identifier]
