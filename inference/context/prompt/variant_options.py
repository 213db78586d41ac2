"""Prompt options of the variants of experiments, validated before an experiment runs."""

from collections.abc import Iterable

from caret.foundation.environment import BadSetting
from inference.completion.variant import Variant
from inference.context.prompt.model_formats.layout import get_layout
from inference.context.prompt.token_budget import MIN_PREFIX_SHARE, TokenShares
from inference.context.sources.ranking import Ranking


def get_shares(variant: Variant) -> TokenShares:
    """Return the variant's shares. Shares that it does not set have their defaults."""
    default = TokenShares()
    return TokenShares(
        suffix=default.suffix if variant.suffix_share is None else variant.suffix_share,
        files=default.files if variant.files_share is None else variant.files_share,
    )


def get_ranking(variant: Variant) -> Ranking:
    return Ranking.RECENCY if variant.ranking is None else Ranking(variant.ranking)


def validate_variants(variants: Iterable[Variant]) -> None:
    """Validate all variants. Raises BadSetting with the name of the invalid variant."""
    for variant in variants:
        try:
            _check_variant(variant)
        except (BadSetting, ValueError) as error:
            raise BadSetting(f"{variant.name}: {error}") from error


def _check_variant(variant: Variant) -> None:
    """Check one variant. Raises BadSetting, or ValueError for an unknown ranking."""
    if variant.layout is not None:
        get_layout(variant.layout)
    get_ranking(variant)
    if get_shares(variant).prefix < MIN_PREFIX_SHARE:
        raise BadSetting(
            "files_share (default 0.3), suffix_share (default 0.2) and 0.1 for snippets must leave"
            f" at least {MIN_PREFIX_SHARE} for the prefix."
        )
