"""A shipment in memory, which can be told to fail."""

from caret.contracts.usage import UsageRecord, decode_records


class FakeShipment:
    """Fails while `fails`; with `max_calls`, after so many deliveries."""

    def __init__(self, *, fails: bool = False, max_calls: int | None = None) -> None:
        self.fails = fails
        self.max_calls = max_calls
        self.calls: list[list[bytes]] = []

    async def send(self, batches: list[bytes]) -> None:
        if self.fails or (self.max_calls is not None and len(self.calls) >= self.max_calls):
            raise OSError("planted")
        self.calls.append(list(batches))

    @property
    def records(self) -> list[UsageRecord]:
        batches = [batch for call in self.calls for batch in call]
        return [record for batch in batches for record in decode_records(batch)]
