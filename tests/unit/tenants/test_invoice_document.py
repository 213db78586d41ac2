"""Invoice documents do not depend on the order of rows, and have the same bytes each time."""

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
USAGE = [
    UsageLine("seats", date(2026, 10, 1), 42, 19_000_000, 25_741_935),
    UsageLine("fast.prompt", date(2026, 10, 9), 412_345_678, 150_000, 61_851_852),
    UsageLine("fast.prompt", date(2026, 10, 10), 1_000, 150_000, 150),
    UsageLine("fast.prompt", date(2026, 9, 30), 2_000, 150_000, 300),
    UsageLine("quality.generated", date(2026, 10, 10), 10_000, 6_000_000, 60_000),
]


def document(usage: list[UsageLine], **changed: Any) -> InvoiceDocument:
    head = msgspec.structs.replace(HEAD, **changed)
    subtotal = sum(line.amount_cents for line in build_lines(usage))
    return build_document(head, usage, LedgerTotals(subtotal, 0, compute_tax(subtotal, head.tax)))


def test_lines_are_seats_then_tokens_separated_by_month_and_price() -> None:
    lines = build_lines(USAGE)

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
def test_the_order_of_rows_does_not_change_the_document(
    usage: list[UsageLine], random_: random.Random
) -> None:
    shuffled = usage.copy()
    random_.shuffle(shuffled)

    assert encode_document(document(shuffled)) == encode_document(document(usage))


@given(st.lists(ENTRIES, max_size=40))
def test_the_lines_add_up_to_the_totals(usage: list[UsageLine]) -> None:
    document_ = document(usage)

    assert sum(line.amount_cents for line in document_.lines) == document_.subtotal_cents
    assert (
        document_.subtotal_cents - document_.credit_cents + document_.tax_cents
        == document_.total_cents
    )


def test_a_sum_that_differs_from_the_ledger_is_rejected() -> None:
    with pytest.raises(InvoiceMismatch):
        build_document(HEAD, USAGE, LedgerTotals(1, 0, 0))


def test_a_pdf_is_reproducible() -> None:
    assert render(document(USAGE)) == render(document(USAGE))


def test_a_pdf_is_reproducible_in_another_process() -> None:
    code = (
        "import sys, msgspec; from tenants.billing.invoices.document import InvoiceDocument;"
        "from tenants.billing.invoices.pdf import render;"
        "made = msgspec.json.decode(sys.stdin.buffer.read(), type=InvoiceDocument);"
        "sys.stdout.buffer.write(render(made))"
    )
    other = subprocess.run(
        [sys.executable, "-c", code],
        input=encode_document(document(USAGE)),
        capture_output=True,
        check=True,
    )

    assert other.stdout == render(document(USAGE))


def test_another_amount_gives_another_pdf() -> None:
    assert render(document(USAGE)) != render(document(USAGE[1:]))


def test_names_are_not_markup_and_long_invoices_have_several_pages() -> None:
    usage = [
        UsageLine(code, date(2026, month, 1), 10_000_000, price, 1_500_000)
        for code in LINES
        for month in range(1, 11)
        for price in (150_000, 160_000)
    ]

    document_ = render(
        document(usage, customer=InvoiceParty("<b>&</b><img src='file:///etc/passwd'/>"))
    )

    assert document_.startswith(b"%PDF")
    assert document_.count(b"/Type /Page\n") > 2


@pytest.mark.parametrize("kind", list(DocumentKind))
def test_a_decoded_document_is_the_same(kind: DocumentKind) -> None:
    sums = LedgerTotals(-500, 0, -95) if kind is DocumentKind.CREDIT_NOTE else None
    head = msgspec.structs.replace(HEAD, kind=kind, corrects="ACME-000011", reason="An outage.")
    document_ = document(USAGE) if sums is None else build_document(head, (), sums)

    decoded = msgspec.json.decode(encode_document(document_), type=InvoiceDocument)

    assert encode_document(decoded) == encode_document(document_)
