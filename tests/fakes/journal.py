"""A journal in memory."""

from caret.contracts.usage import CompletionRecord, LateOutcomeRecord, OutcomeRecord, UsageRecord


class FakeJournal:
    def __init__(self) -> None:
        self.records: list[UsageRecord] = []

    def append(self, record: UsageRecord) -> None:
        self.records.append(record)

    @property
    def completions(self) -> list[CompletionRecord]:
        return [record for record in self.records if isinstance(record, CompletionRecord)]

    @property
    def late_outcomes(self) -> list[LateOutcomeRecord]:
        return [record for record in self.records if isinstance(record, LateOutcomeRecord)]

    @property
    def outcomes(self) -> list[OutcomeRecord]:
        return [record for record in self.records if isinstance(record, OutcomeRecord)]
