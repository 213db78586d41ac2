"""Invoice documents are made of rows in any order, with the same bytes each time."""

import random
import subprocess
import sys
from datetime import date
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenants.billing.invoices.document import (
    DocumentKind,
    InvoiceDocument,
    InvoiceHeader,
    InvoiceMismatch,
    InvoiceParty,
    InvoiceTax,
    LedgerTotals,
    UsageLine,
    build_document,
    build_lines,
    compute_tax,
    encode_document,
)
from tenants.billing.invoices.pdf import render
from tenants.billing.pricing import LINES

HEAD = InvoiceHeader(
    number="ACME-000012",
    kind=DocumentKind.INVOICE,
    corrects="",
    month="2026-10-01",
    issued_on="2026-11-01",
    due_on="2026-11-15",
    currency="EUR",
    issuer=InvoiceParty(
        "Caret Cloud GmbH", ("Torstraße 12", "10119 Berlin"), "DE 301", "a@b.example"
    ),
    customer=InvoiceParty("Łódź <Robotics> & Σία", ("ul. Piotrkowska 104",), "PL 725"),
    tax=InvoiceTax("VAT", 1_900),
    payment=("IBAN DE02 1203 0000",),
    reason="",
)
USED = [
    UsageLine("seats", date(2026, 10, 1), 42, 19_000_000, 25_741_935),
    UsageLine("fast.prompt", date(2026, 10, 9), 412_345_678, 150_000, 61_851_852),
    UsageLine("fast.prompt", date(2026, 10, 10), 1_000, 150_000, 150),
    UsageLine("fast.prompt", date(2026, 9, 30), 2_000, 150_000, 300),
    UsageLine("quality.generated", date(2026, 10, 10), 10_000, 6_000_000, 60_000),
]


def document(used: list[UsageLine], **changed: Any) -> InvoiceDocument:
    head = msgspec.structs.replace(HEAD, **changed)
    subtotal = sum(line.amount_cents for line in build_lines(used))
    return build_document(head, used, LedgerTotals(subtotal, 0, compute_tax(subtotal, head.tax)))


def test_lines_are_seats_then_tokens_each_month_and_price_apart() -> None:
    lines = build_lines(USED)

    assert [(line.code, line.used_in, line.quantity, line.amount_cents) for line in lines] == [
        ("seats", "2026-10-01", 42, 2_574),
        ("fast.prompt", "2026-09-01", 2_000, 0),
        ("fast.prompt", "2026-10-01", 412_346_678, 6_185),
        ("quality.generated", "2026-10-01", 10_000, 6),
    ]


ENTRIES = st.builds(
    UsageLine,
    st.sampled_from(["seats", *LINES]),
    st.dates(date(2026, 8, 1), date(2026, 10, 31)),
    st.integers(0, 10**9),
    st.sampled_from([150_000, 600_000]),
    st.integers(0, 10**12),
)


@given(st.lists(ENTRIES, max_size=40), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_no_byte(used: list[UsageLine], chance: random.Random) -> None:
    shuffled = used.copy()
    chance.shuffle(shuffled)

    assert encode_document(document(shuffled)) == encode_document(document(used))


@given(st.lists(ENTRIES, max_size=40))
def test_what_is_printed_adds_up(used: list[UsageLine]) -> None:
    made = document(used)

    assert sum(line.amount_cents for line in made.lines) == made.subtotal_cents
    assert made.subtotal_cents - made.credit_cents + made.tax_cents == made.total_cents


def test_a_sum_that_the_ledger_does_not_have_makes_no_document() -> None:
    with pytest.raises(InvoiceMismatch):
        build_document(HEAD, USED, LedgerTotals(1, 0, 0))


def test_a_pdf_is_the_same_bytes_each_time() -> None:
    assert render(document(USED)) == render(document(USED))


def test_a_pdf_is_the_same_bytes_in_another_process() -> None:
    code = (
        "import sys, msgspec; from tenants.billing.invoices.document import InvoiceDocument;"
        "from tenants.billing.invoices.pdf import render;"
        "made = msgspec.json.decode(sys.stdin.buffer.read(), type=InvoiceDocument);"
        "sys.stdout.buffer.write(render(made))"
    )
    other = subprocess.run(
        [sys.executable, "-c", code],
        input=encode_document(document(USED)),
        capture_output=True,
        check=True,
    )

    assert other.stdout == render(document(USED))


def test_another_amount_is_another_pdf() -> None:
    assert render(document(USED)) != render(document(USED[1:]))


def test_names_cannot_be_markup_and_long_invoices_have_pages() -> None:
    used = [
        UsageLine(code, date(2026, month, 1), 10_000_000, price, 1_500_000)
        for code in LINES
        for month in range(1, 11)
        for price in (150_000, 160_000)
    ]

    made = render(document(used, customer=InvoiceParty("<b>&</b><img src='file:///etc/passwd'/>")))

    assert made.startswith(b"%PDF")
    assert made.count(b"/Type /Page\n") > 2


@pytest.mark.parametrize("kind", list(DocumentKind))
def test_a_document_that_is_read_again_is_the_same(kind: DocumentKind) -> None:
    sums = LedgerTotals(-500, 0, -95) if kind is DocumentKind.CREDIT_NOTE else None
    head = msgspec.structs.replace(HEAD, kind=kind, corrects="ACME-000011", reason="An outage.")
    made = document(USED) if sums is None else build_document(head, (), sums)

    again = msgspec.json.decode(encode_document(made), type=InvoiceDocument)

    assert encode_document(again) == encode_document(made)
