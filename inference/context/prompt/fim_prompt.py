"""Builds fill-in-the-middle prompts within a token limit, laid out for the prefix cache."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from caret.contracts.content_exclusion import is_excluded
from inference.completion.incoming_request import ContextFile
from inference.completion.request import AdmittedRequest, CompletionRequest
from inference.completion.segment import SegmentTokens, count_segments, join_token_ids
from inference.completion.snippet import Snippet
from inference.context.prompt.cursor_text import CursorText
from inference.context.prompt.line_or_block import is_single_line
from inference.context.prompt.model_formats.layout import (
    PromptLayout,
    PromptParts,
    lay_out_segments,
    resolve_order,
)
from inference.context.prompt.model_formats.model_families import FimOrder
from inference.context.prompt.prompt import Prompt
from inference.context.prompt.prompt_encoder import PromptEncoder
from inference.context.prompt.prompt_writer import PromptWriter
from inference.context.prompt.token_budget import TokensByPart, allocate
from inference.context.prompt.variant_options import get_ranking, get_shares
from inference.context.redaction.redact import (
    MAX_KEY_CHARS,
    drop_rest_of_private_key,
    ends_in_private_key,
    redact_private_keys,
)
from inference.context.sources.context_items import (
    ContextItem,
    ContextItems,
    build_definition_items,
    build_file_items,
    build_pinned_items,
    build_snippet_items,
    count_tokens,
    fit_items,
)
from inference.context.sources.ranking import drop_useless_snippets
from inference.context.tokenization.tokenized_lines import PromptWindow

_MARKER_TOKENS: Final = 4  # at most: begin, prefix, suffix, middle
# Other files use at most this share of the budget, unless their own share is larger.
_MAX_FILES_SHARE: Final = 0.5
# Pinned files use at most this share of the budget. The other parts share the rest.
_MAX_PINNED_SHARE: Final = 0.45
# Definitions use at most this share of the budget. They take it from the suffix, or else from the
# prefix: both come after the definitions. The other files come before the definitions. If these
# files became shorter instead, everything after them would miss the prefix cache.
_MAX_DEFINITIONS_SHARE: Final = 0.1
# The prefix's demand is rounded up to a multiple of a sixteenth of the budget. Otherwise each
# keystroke would take a token from the suffix's end, and everything after the suffix would miss the
# prefix cache.
_STEPS: Final = 16


def build_fim_prompt(
    writer: PromptWriter,
    admitted: AdmittedRequest,
    snippets: tuple[Snippet, ...],
    *,
    max_tokens: int,
) -> Prompt:
    """Build a prompt of at most `max_tokens`, without secrets and without excluded snippets.

    Parts that do not fit are truncated by their shares of the token budget (see `token_budget`).
    """
    request = admitted.request
    layout = writer.get_layout(admitted.variant)
    order = resolve_order(layout, writer.family)
    cursor_text = _prepare_cursor_text(writer, request, layout, order)
    encoder = PromptEncoder(
        writer, writer.partitions.for_principal(admitted.principal), path=request.path
    )
    room = max_tokens - _MARKER_TOKENS  # tokens that are not assigned to any part yet
    pinned = build_pinned_items(request, encoder, max_tokens=int(room * _MAX_PINNED_SHARE))
    room -= count_tokens(pinned)
    # The shares of the token budget apply to this number.
    nominal_tokens = writer.get_budget_tokens(request.tier) - count_tokens(pinned)
    demand = _estimate_demand(writer, cursor_text, nominal_tokens)
    items = _gather_context(
        admitted, snippets, encoder, demand, nominal=nominal_tokens, pinned=pinned
    )
    budget = allocate(
        room - items.num_header_tokens,
        replace(demand, files=count_tokens(items.files), snippets=count_tokens(items.snippets)),
        shares=get_shares(admitted.variant),
        nominal=nominal_tokens,
    )
    items = items.fit_budget(files=budget.files, snippets=budget.snippets)
    context = items.lay_out(is_sorted=layout.has_sorted_files)
    num_context_tokens = sum(len(piece.token_ids) for piece in context)
    room -= num_context_tokens - count_tokens(pinned)  # `room` excludes the pinned files already
    # The suffix may use all tokens that the prefix was not granted, because the suffix may need
    # more tokens than estimated.
    suffix = encoder.encode_after(cursor_text.suffix, max_tokens=max(0, room - budget.prefix))
    window = encoder.encode_before(
        cursor_text.prefix, max_tokens=room - len(suffix), is_anchored=layout.is_anchored
    )
    pieces = lay_out_segments(order, writer.markers, _to_parts(order, context, suffix, window))
    return Prompt(
        token_ids=join_token_ids(pieces),
        stop_token_ids=writer.stop_token_ids,
        is_single_line=is_single_line(request),
        num_files=len(items.pinned) + len(items.files),
        num_snippets=len(items.snippets),
        num_stable_tokens=len(writer.markers.begin) + num_context_tokens,
        healed_prefix=cursor_text.healed_prefix,
        segments=count_segments(pieces),
    )


def _prepare_cursor_text(
    writer: PromptWriter, request: CompletionRequest, layout: PromptLayout, order: FimOrder
) -> CursorText:
    suffix = request.suffix
    if ends_in_private_key(request.prefix):
        # Without the header, which is in the prefix, the rest of the key looks like other text.
        suffix = drop_rest_of_private_key(request.prefix, suffix)
    cursor_text = CursorText(request.prefix, suffix)
    if layout.has_stripped_closers:
        cursor_text = cursor_text.strip_closers()
    if not writer.has_token_healing(order):
        return cursor_text
    healed = cursor_text.heal(writer.tokenizer.split_word)
    # The engine also gets the withheld word (`EngineRequest.required_prefix`). So a word that is a
    # part of a private key is not withheld: it stays in the prefix, where it is redacted.
    # The excerpt is longer than any private key, so it contains the header of that key.
    excerpt = request.prefix[-2 * MAX_KEY_CHARS :]
    if not redact_private_keys(excerpt).endswith(healed.healed_prefix):
        return cursor_text
    return healed


def _gather_context(
    admitted: AdmittedRequest,
    snippets: tuple[Snippet, ...],
    encoder: PromptEncoder,
    demand: TokensByPart,
    *,
    nominal: int,
    pinned: list[ContextItem],
) -> ContextItems:
    """Return all items that could be useful. Files and snippets may exceed their final limits.

    `nominal` is the number of tokens to which the shares of the token budget apply.
    """
    request, shares = admitted.request, get_shares(admitted.variant)
    file_items = build_file_items(request, encoder, ranking=get_ranking(admitted.variant))
    spare = min(nominal - demand.prefix - demand.suffix, int(nominal * _MAX_FILES_SHARE))
    files = list(fit_items(file_items, max_tokens=max(spare, int(nominal * shares.files))))
    useful_snippets = _select_useful_snippets(
        admitted, snippets, encoder, [*pinned, *files], max_tokens=nominal
    )
    return ContextItems(
        repository=encoder.encode_repository(request.repository),
        pinned=pinned,
        files=files,
        snippets=list(fit_items(build_snippet_items(useful_snippets, encoder), max_tokens=nominal)),
        definitions=build_definition_items(
            request,
            encoder,
            paths_in_prompt=frozenset(
                file.path for file in _select_whole(request, encoder, [*pinned, *files])
            ),
            max_tokens=int(nominal * _MAX_DEFINITIONS_SHARE),
        ),
        current=encoder.encode_header(request.path),
    )


def _select_useful_snippets(
    admitted: AdmittedRequest,
    snippets: tuple[Snippet, ...],
    encoder: PromptEncoder,
    files: list[ContextItem],
    *,
    max_tokens: int,
) -> list[Snippet]:
    """Return the snippets that the policy allows, without duplicates and outdated ones."""
    if not snippets:
        return []
    request, policy = admitted.request, admitted.principal.snapshot.policy
    allowed = [
        snippet
        for snippet in snippets
        if not is_excluded(policy, repository=request.repository, path=snippet.path)
    ]
    whole_files = _select_whole(request, encoder, files)
    nearby_texts = encoder.select_nearby_text(request.prefix, request.suffix, max_tokens=max_tokens)
    return list(
        drop_useless_snippets(
            allowed,
            prompt_texts=(*nearby_texts, *(file.text for file in whole_files)),
            open_files={file.path: file.text for file in request.files},
        )
    )


def _select_whole(
    request: CompletionRequest, encoder: PromptEncoder, items: Iterable[ContextItem]
) -> list[ContextFile]:
    """Return the files among `items` whose whole text is in the prompt if nothing is truncated."""
    in_prompt = {item.path for item in items}
    return [file for file in request.files if file.path in in_prompt and encoder.is_short(file)]


def _estimate_demand(writer: PromptWriter, text: CursorText, nominal: int) -> TokensByPart:
    """Estimate the tokens of prefix and suffix.

    Exact numbers are not needed, because limits are enforced later. So each text is encoded only
    once.
    """
    step = nominal // _STEPS
    num_steps = -(-_estimate_tokens(writer, text.prefix) // step)  # rounded up
    return TokensByPart(
        prefix=num_steps * step,
        suffix=_estimate_tokens(writer, text.suffix),
        files=0,
        snippets=0,
    )


def _estimate_tokens(writer: PromptWriter, text: str) -> int:
    # A fifth more tokens than an average text of this length has, so that denser code gets enough.
    # Two more, because the average says little about a very short text.
    return int(len(text) / writer.chars_per_token * 1.2) + 2


def _to_parts(
    order: FimOrder, context: list[SegmentTokens], suffix: list[int], window: PromptWindow
) -> PromptParts:
    # Only EFIM moves the unstable end of the prefix behind the suffix.
    end = window.unstable_from if order is FimOrder.EFIM else len(window.token_ids)
    return PromptParts(
        context=context,
        suffix=suffix,
        prefix=window.token_ids[:end],
        prefix_tail=window.token_ids[end:],
    )
