"""A variant of an experiment: how its requests' prompts and filters differ from the pool's own."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Variant:
    """None: as the pool, or the service, has it."""

    name: str  # experiment/variant, in the numbers; "": no experiment
    layout: str | None = None  # one of inference.context.prompt.layout's names
    ranking: str | None = None  # of other files: recency | similarity
    files_share: float | None = None  # of the prompt's budget, 0 to 1
    suffix_share: float | None = None
    filter: str | None = None  # syntax | plain (without the parser)


NO_VARIANT = Variant(name="")
