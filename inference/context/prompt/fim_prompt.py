"""The middle of a file: the texts around the cursor and from other files become a prompt, laid out
for the engine's prefix cache, exactly within a limit."""

from dataclasses import replace
from typing import Final

from caret.contracts.content_exclusion import is_excluded
from inference.completion.request import Admitted, CompletionRequest
from inference.completion.segment import Piece, joined, segments_of
from inference.completion.snippet import Snippet
from inference.context.prompt.cursor_text import Surrounding
from inference.context.prompt.layout import Layout, Parts, order_of, pieces_of
from inference.context.prompt.line_or_block import is_single_line
from inference.context.prompt.model_families import Order
from inference.context.prompt.prompt import Prompt
from inference.context.prompt.prompt_encoder import Encoder
from inference.context.prompt.prompt_writer import PromptWriter
from inference.context.prompt.token_budget import PROMPT_TOKENS, Budget, share_out
from inference.context.prompt.variant_options import ranking_of, shares_of
from inference.context.sources.context_items import (
    Source,
    Sources,
    files_of,
    num_tokens,
    snippets_of,
    take,
)
from inference.context.sources.deduplication import without_repeats
from inference.context.tokenization.tokenized_lines import Window

_MARKER_TOKENS: Final = 4  # at most: begin, prefix, suffix, middle
# Other files are not looked at beyond this share of the budget, unless their own share is more.
_MAX_FILES_SHARE: Final = 0.5
# The prefix's wish is rounded up to a sixteenth of the budget: else each keystroke would take a
# token from the suffix's end, and with it all that stands behind the suffix out of the cache.
_STEPS: Final = 16


def fill_in_prompt(
    writer: PromptWriter,
    admitted: Admitted,
    snippets: tuple[Snippet, ...],
    *,
    max_tokens: int,
) -> Prompt:
    request = admitted.request
    layout = writer.layout_of(admitted.variant)
    order = order_of(layout, writer.family)
    text = _shown(writer, request, layout, order)
    encode = Encoder(writer, writer.holders.of(admitted.principal), path=request.path)
    nominal = PROMPT_TOKENS[request.tier]
    wanted = _wanted(writer, text, nominal)
    sources = _gathered(admitted, snippets, encode, wanted)
    room = max_tokens - _MARKER_TOKENS
    budget = share_out(
        room - sources.num_header_tokens,
        replace(wanted, files=num_tokens(sources.files), snippets=num_tokens(sources.snippets)),
        shares=shares_of(admitted.variant),
        nominal=nominal,
    )
    sources = sources.within(files=budget.files, snippets=budget.snippets)
    context = sources.laid_out(is_sorted=layout.sorts_files)
    num_context_tokens = sum(len(piece.token_ids) for piece in context)
    room -= num_context_tokens
    # What nobody is estimated to need is there for a suffix that is denser than estimated.
    suffix = encode.after(text.suffix, max_tokens=room - budget.prefix)
    window = encode.before(
        text.prefix, max_tokens=room - len(suffix), is_anchored=layout.is_anchored
    )
    pieces = pieces_of(order, writer.markers, _parts(order, context, suffix, window))
    return Prompt(
        token_ids=joined(pieces),
        stop_token_ids=writer.stop_token_ids,
        is_single_line=is_single_line(request),
        num_files=len(sources.files),
        num_snippets=len(sources.snippets),
        num_stable_tokens=len(writer.markers.begin) + num_context_tokens,
        healed=text.healed,
        segments=segments_of(pieces),
    )


def _shown(
    writer: PromptWriter, request: CompletionRequest, layout: Layout, order: Order
) -> Surrounding:
    text = Surrounding(request.prefix, request.suffix)
    if layout.skips_closers:
        text = text.without_closers()
    return text.healing(writer.tokens.split_word) if writer.heals(order) else text


def _gathered(
    admitted: Admitted, snippets: tuple[Snippet, ...], encode: Encoder, wanted: Budget
) -> Sources:
    """As much as could be of use, before it is known what fits."""
    request = admitted.request
    nominal, shares = PROMPT_TOKENS[request.tier], shares_of(admitted.variant)
    wished = files_of(request, encode, ranking=ranking_of(admitted.variant))
    spare = min(nominal - wanted.prefix - wanted.suffix, int(nominal * _MAX_FILES_SHARE))
    files = list(take(wished, max_tokens=max(spare, int(nominal * shares.files))))
    allowed = _worth_showing(admitted, snippets, encode, files)
    return Sources(
        repository=encode.repository(request.repository),
        files=files,
        snippets=list(take(snippets_of(allowed, encode), max_tokens=nominal)),
        current=encode.header(request.path),
    )


def _worth_showing(
    admitted: Admitted, snippets: tuple[Snippet, ...], encode: Encoder, files: list[Source]
) -> list[Snippet]:
    """Of what was found: what the policy allows, and neither the own file's text nor that of
    `files` has anyway."""
    if not snippets:
        return []
    request, policy = admitted.request, admitted.principal.snapshot.policy
    allowed = [
        each
        for each in snippets
        if not is_excluded(policy, repository=request.repository, path=each.path)
    ]
    in_prompt = {source.path for source in files}
    whole = [each for each in request.files if each.path in in_prompt and encode.is_whole(each)]
    near = encode.near(request.prefix, request.suffix, max_tokens=PROMPT_TOKENS[request.tier])
    return list(
        without_repeats(
            allowed,
            shown=(*near, *(each.text for each in whole)),
            sent={each.path: each.text for each in request.files},
        )
    )


def _wanted(writer: PromptWriter, text: Surrounding, nominal: int) -> Budget:
    """By estimate, so that each text is encoded once; the encoder holds to what it is given."""
    step = nominal // _STEPS
    return Budget(
        prefix=-(-_estimate(writer, text.prefix) // step) * step,
        suffix=_estimate(writer, text.suffix),
        files=0,
        snippets=0,
    )


def _estimate(writer: PromptWriter, text: str) -> int:
    # A fifth more than on average: code denser than the sample must not be starved.
    return int(len(text) / writer.chars_per_token * 1.2) + 2


def _parts(order: Order, context: list[Piece], suffix: list[int], window: Window) -> Parts:
    end = window.typed_from if order is Order.EFIM else len(window.token_ids)
    return Parts(
        context=context,
        suffix=suffix,
        prefix=window.token_ids[:end],
        typed=window.token_ids[end:],
    )
