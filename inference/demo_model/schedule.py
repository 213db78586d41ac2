"""Learning rate and sequence length as functions of how much of the time budget is spent."""

from dataclasses import dataclass

TOKENS_PER_STEP = 4096


@dataclass(frozen=True, slots=True)
class Schedule:
    """Warm-up, flat, linear decay to zero. Shares are of the time budget, from 0 to 1."""

    warm_up_steps: int = 100
    decay_start: float = 0.6
    long_start: float = 0.8
    echo_until: float = 0.6
    echo_share: float = 0.12  # of the documents until then
    short_tokens: int = 512
    long_tokens: int = 2048

    def rate_factor(self, step: int, share: float) -> float:
        """From 0 to 1, to be multiplied with the peak rate."""
        warm_up = min(1.0, (step + 1) / self.warm_up_steps)
        if share <= self.decay_start:
            return warm_up
        return warm_up * max(0.0, (1 - share) / (1 - self.decay_start))

    def echo_share_at(self, share: float) -> float:
        return self.echo_share if share < self.echo_until else 0.0

    def sequence_tokens(self, share: float) -> int:
        return self.long_tokens if share >= self.long_start else self.short_tokens
