"""A variant of an experiment: how prompts and filters differ from the pool's configuration."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Variant:
    """The settings of a variant. None: the same as without the experiment."""

    name: str  # experiment/variant, in usage records; "": no experiment
    layout: str | None = None  # a name in inference.context.prompt.model_formats.layout
    ranking: str | None = None  # of other files: recency | similarity
    files_share: float | None = None  # of the prompt's tokens, 0 to 1
    suffix_share: float | None = None  # of the prompt's tokens, 0 to 1
    filter: str | None = None  # syntax | plain (without the parser)


NO_VARIANT = Variant(name="")
