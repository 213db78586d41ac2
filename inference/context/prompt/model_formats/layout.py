"""The layouts of prompts, as data: the order of segments and the beginning of windows.

The prefix cache serves the longest beginning that a prompt has in common with an earlier prompt.
Stable segments therefore come first, and the text that the user is typing comes last:

    begin | repository | pinned files | other files | snippets | suffix | prefix     "stable"
    `-- the same for all users -------'
    `---- constant while a file is open -------------------------'  `-- changes while typing

Definitions stand between the snippets and the suffix; the user may add some while typing. In this
layout, windows of long texts begin at lines that are chosen by their content. The other layouts are
for comparison, in experiments and in the benchmark `prefix_reuse`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from caret.foundation.environment import BadSetting
from inference.completion.segment import SegmentKind, SegmentTokens, join_token_ids
from inference.context.prompt.model_formats.model_families import FimOrder, ModelFamily
from inference.context.tokenization.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class PromptLayout:
    name: str
    order: FimOrder | None  # None: suffix first, in the order that suits the family best
    # Windows begin with lines chosen by their content; False: windows move with the cursor.
    is_anchored: bool = True
    # Sort other files and snippets by path, so that an edit in one does not move the others. False:
    # sort them by rank, with the best one last.
    has_sorted_files: bool = False
    # Begin the suffix with the next line if only closing brackets, quotes and separators follow the
    # cursor on its line. Editors often insert and remove these characters while the user types. If
    # the completion repeats them, the filter drops them.
    has_stripped_closers: bool = False


DEFAULT_LAYOUT: Final = "stable"
LAYOUTS: Final = {
    layout.name: layout
    for layout in (
        PromptLayout("stable", None, has_sorted_files=True, has_stripped_closers=True),
        PromptLayout("efim", FimOrder.EFIM, has_sorted_files=True, has_stripped_closers=True),
        PromptLayout("spm", FimOrder.SPM),
        PromptLayout("spm2", FimOrder.SPM_VARIANT_2),
        PromptLayout("psm", FimOrder.PSM),
        # Common in other tools, for comparison.
        PromptLayout("psm-sliding", FimOrder.PSM, is_anchored=False),
        PromptLayout("spm-sliding", FimOrder.SPM, is_anchored=False),
    )
}


@dataclass(frozen=True, slots=True)
class FimMarkers:
    """The markers of a family as token IDs: one ID each, or none if the family lacks the marker."""

    begin: list[int]
    prefix: list[int]
    suffix: list[int]
    middle: list[int]


@dataclass(frozen=True, slots=True)
class PromptParts:
    """The parts of a prompt as token IDs, already within the budget."""

    context: list[SegmentTokens]  # between the marker `begin` and the suffix and prefix
    suffix: list[int]
    prefix: list[int]
    prefix_tail: list[int]  # EFIM: the part of the prefix after the anchor; other orders: empty


def get_layout(name: str) -> PromptLayout:
    """Return the layout. Raises BadSetting."""
    if layout := LAYOUTS.get(name):
        return layout
    raise BadSetting(f"Unknown layout {name}; the layouts are {', '.join(LAYOUTS)}.")


def resolve_order(layout: PromptLayout, family: ModelFamily) -> FimOrder:
    """Return the order of the markers for a family in a layout."""
    if family.middle is None:  # without a middle marker, only this order is possible
        return FimOrder.SPM
    if layout.order is not None:
        return layout.order
    # Variant 2 is PSM with an empty prefix. A model trained with PSM takes the text before the
    # cursor for the beginning of the middle.
    return FimOrder.SPM_VARIANT_2 if family.order is FimOrder.PSM else family.order


def ends_with_text(order: FimOrder, family: ModelFamily) -> bool:
    """Return whether the prompt ends with the text before the cursor, and not with a marker."""
    return family.middle is None or order in (FimOrder.SPM_VARIANT_2, FimOrder.EFIM)


def resolve_markers(family: ModelFamily, tokenizer: Tokenizer) -> FimMarkers:
    return FimMarkers(
        begin=_token_ids_of(tokenizer, family.begin),
        prefix=_token_ids_of(tokenizer, family.prefix),
        suffix=_token_ids_of(tokenizer, family.suffix),
        middle=_token_ids_of(tokenizer, family.middle),
    )


def resolve_stop_token_ids(family: ModelFamily, tokenizer: Tokenizer) -> list[int]:
    """Return the tokens that end a completion: the family's `ends`, and markers except `begin`."""
    names = (
        *(family.prefix, family.suffix, family.middle),
        *(family.file_separator, family.repository),
        *family.ends,
    )
    return sorted({token_id for name in names for token_id in _token_ids_of(tokenizer, name)})


def lay_out(order: FimOrder, markers: FimMarkers, parts: PromptParts) -> list[int]:
    """Return the token IDs of the whole prompt."""
    return join_token_ids(lay_out_segments(order, markers, parts))


def lay_out_segments(
    order: FimOrder, markers: FimMarkers, parts: PromptParts
) -> list[SegmentTokens]:
    """Return the segments: `begin`, the context, then prefix and suffix in the given order."""
    return [_marker_segment(markers.begin), *parts.context, *_ORDERS[order](markers, parts)]


def _order_psm(markers: FimMarkers, parts: PromptParts) -> list[SegmentTokens]:
    return [
        *(_marker_segment(markers.prefix), SegmentTokens(SegmentKind.PREFIX, parts.prefix)),
        *(_marker_segment(markers.suffix), SegmentTokens(SegmentKind.SUFFIX, parts.suffix)),
        *(_marker_segment(markers.middle), SegmentTokens(SegmentKind.PREFIX, parts.prefix_tail)),
    ]


def _order_spm(markers: FimMarkers, parts: PromptParts) -> list[SegmentTokens]:
    return [
        *(_marker_segment(markers.suffix), SegmentTokens(SegmentKind.SUFFIX, parts.suffix)),
        *(_marker_segment(markers.prefix), SegmentTokens(SegmentKind.PREFIX, parts.prefix)),
        _marker_segment(markers.middle),
    ]


def _order_spm_variant_2(markers: FimMarkers, parts: PromptParts) -> list[SegmentTokens]:
    return [
        _marker_segment(markers.prefix),
        *(_marker_segment(markers.suffix), SegmentTokens(SegmentKind.SUFFIX, parts.suffix)),
        *(_marker_segment(markers.middle), SegmentTokens(SegmentKind.PREFIX, parts.prefix)),
    ]


def _marker_segment(token_ids: list[int]) -> SegmentTokens:
    return SegmentTokens(SegmentKind.MARKERS, token_ids)


_ORDERS: Final[dict[FimOrder, Callable[[FimMarkers, PromptParts], list[SegmentTokens]]]] = {
    FimOrder.PSM: _order_psm,
    FimOrder.EFIM: _order_psm,
    FimOrder.SPM: _order_spm,
    FimOrder.SPM_VARIANT_2: _order_spm_variant_2,
}


def _token_ids_of(tokenizer: Tokenizer, name: str | None) -> list[int]:
    if name is None:
        return []
    token_id = tokenizer.get_token_id(name)
    return [] if token_id is None else [token_id]
