"""An in-memory journal shipper that can fail and can lose its entries."""

from caret.contracts.usage import UsageRecord, decode_records
from inference.recording.journal import EntryId, IngestionBacklog, ShipmentReceipt


class FakeShipper:
    """Each delivery is an entry. Deliveries fail while `fails` is set, and after `max_calls`."""

    def __init__(
        self, *, fails: bool = False, max_calls: int | None = None, ingests: bool = True
    ) -> None:
        """With `ingests`, each entry is ingested at once; otherwise `oldest` waits."""
        self.fails = fails
        self.max_calls = max_calls
        self.ingests = ingests
        self.oldest: EntryId = (1, 0)  # the oldest entry that waits, unless `ingests` is set
        self.server = "first"  # another name: a server that has none of the earlier entries
        self.calls: list[list[bytes]] = []

    async def send_batches(self, batches: list[bytes]) -> ShipmentReceipt:
        if self.fails or (self.max_calls is not None and len(self.calls) >= self.max_calls):
            raise OSError("planted")
        self.calls.append(list(batches))
        return ShipmentReceipt(self.server, (len(self.calls), 0))

    async def read_backlog(self) -> IngestionBacklog:
        if self.fails:
            raise OSError("planted")
        return IngestionBacklog(self.server, None if self.ingests else self.oldest)

    @property
    def records(self) -> list[UsageRecord]:
        batches = [batch for call in self.calls for batch in call]
        return [record for batch in batches for record in decode_records(batch)]
