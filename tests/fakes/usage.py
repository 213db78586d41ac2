"""Usage records that differ by a number."""

from caret.contracts.usage import OutcomeEvent, OutcomeRecord
from caret.foundation.ids import RequestId
from tests.fakes.tenants import ACME, ADA


def make_record(number: int) -> OutcomeRecord:
    return OutcomeRecord(
        outcome_id=RequestId(f"outcome-{number}"),
        request_id=RequestId("request"),
        tenant_id=ACME,
        user_id=ADA,
        occurred_at_ms=1,
        event=OutcomeEvent.SHOWN,
        chars=number,
        after_ms=0,
    )
