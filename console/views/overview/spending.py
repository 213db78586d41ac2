"""The current month's spending compared with the tenant's budget."""

from dataclasses import dataclass

from console.money_format import amount
from console.usage_filters.number_format import share
from tenants.usage.reports.overview import Overview


@dataclass(frozen=True, slots=True)
class SpendLine:
    spent: str
    limit: str  # "": no budget
    share: str
    percent: int  # of the limit, at most 100
    tone: str  # "" | warn | bad
    is_hard: bool


def spend_line(found: Overview) -> SpendLine | None:
    spend = found.spend
    if spend is None:
        return None
    spent = amount(spend.spent_micros, spend.currency)
    if not spend.limit_micros:
        return SpendLine(spent, "", "", 0, "", is_hard=False)
    part = spend.spent_micros / spend.limit_micros
    return SpendLine(
        spent=spent,
        limit=amount(spend.limit_micros, spend.currency),
        share=share(part),
        percent=min(100, int(part * 100)),
        tone=_tone_of(part),
        is_hard=spend.is_hard,
    )


def _tone_of(part: float) -> str:
    """Return the tone. The limits are those of budget alerts: 80 percent and 100 percent."""
    return "bad" if part >= 1 else ("warn" if part >= 0.8 else "")
