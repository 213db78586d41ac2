"""A journal in memory."""

from caret.contracts.usage import CompletionRecord, LateOutcomeRecord, OutcomeRecord, UsageRecord


class FakeJournal:
    def __init__(self) -> None:
        self.records: list[UsageRecord] = []

    def append(self, record: UsageRecord) -> None:
        self.records.append(record)

    @property
    def completions(self) -> list[CompletionRecord]:
        return [each for each in self.records if isinstance(each, CompletionRecord)]

    @property
    def belated(self) -> list[LateOutcomeRecord]:
        return [each for each in self.records if isinstance(each, LateOutcomeRecord)]

    @property
    def outcomes(self) -> list[OutcomeRecord]:
        return [each for each in self.records if isinstance(each, OutcomeRecord)]
