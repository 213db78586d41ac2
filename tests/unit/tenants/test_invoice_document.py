"""Invoice documents do not depend on the order of rows, and have the same bytes each time."""

import random
import subprocess
import sys
from datetime import date, datetime, tzinfo
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from facturx import facturx, get_facturx_xml_from_pdf
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tenants.billing.invoices.document import (
    BankAccount,
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
from tenants.billing.invoices.einvoice import list_missing_fields
from tenants.billing.invoices.pdf import render_pdf
from tenants.billing.pricing import TIER_LINES

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
    tax=InvoiceTax("VAT", basis_points=1_900),
    payment=("IBAN DE02 1203 0000",),
    reason="",
)
# Each line has a code, a day, a quantity, a price in micros (of a seat for a month, or of a million
# tokens), and an amount in micros.
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


USAGE_LINES = st.builds(
    UsageLine,
    st.sampled_from(["seats", *TIER_LINES]),
    st.dates(date(2026, 8, 1), date(2026, 10, 31)),
    st.integers(0, 10**9),
    st.sampled_from([150_000, 600_000]),
    st.integers(0, 10**12),
)


@given(st.lists(USAGE_LINES, max_size=40), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_change_the_document(
    usage: list[UsageLine], random_: random.Random
) -> None:
    shuffled = usage.copy()
    random_.shuffle(shuffled)

    assert encode_document(document(shuffled)) == encode_document(document(usage))


@given(st.lists(USAGE_LINES, max_size=40))
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
    assert render_pdf(document(USAGE)) == render_pdf(document(USAGE))


def test_a_pdf_is_reproducible_in_another_process() -> None:
    code = (
        "import sys, msgspec; from tenants.billing.invoices.document import InvoiceDocument;"
        "from tenants.billing.invoices.pdf import render_pdf;"
        "document = msgspec.json.decode(sys.stdin.buffer.read(), type=InvoiceDocument);"
        "sys.stdout.buffer.write(render_pdf(document))"
    )
    other = subprocess.run(
        [sys.executable, "-c", code],
        input=encode_document(document(USAGE)),
        capture_output=True,
        check=True,
    )

    assert other.stdout == render_pdf(document(USAGE))


def for_einvoice(document_: InvoiceDocument) -> InvoiceDocument:
    """Return the document with all that an e-invoice needs."""
    head = msgspec.structs.replace(
        document_.head,
        issuer=InvoiceParty("Caret Cloud GmbH", ("Torstraße 12",), "DE 301234567", "a@b.c", "DE"),
        customer=InvoiceParty(
            "Łódź <Robotics> & Σία", ("a", "b", "c", "d"), "PL7251801126", "", "PL"
        ),
        bank=BankAccount("DE02 1203 0000 0000 2020 51", "BYLADEM1001", "DKB"),
    )
    return msgspec.structs.replace(document_, head=head)


def correction() -> InvoiceDocument:
    head = msgspec.structs.replace(
        HEAD, kind=DocumentKind.CREDIT_NOTE, corrects="ACME-000011", reason="An outage."
    )
    totals = LedgerTotals(subtotal_cents=-500, credit_cents=0, tax_cents=-95)
    return build_document(head, (), totals)


def with_credit() -> InvoiceDocument:
    totals = LedgerTotals(subtotal_cents=8_765, credit_cents=765, tax_cents=1_520)
    return build_document(HEAD, USAGE, totals)


@pytest.mark.parametrize(
    ("document_", "kind", "total"),  # the kinds of EN 16931: 380 is an invoice, 381 a credit note
    [
        (document(USAGE), "380", "104.30"),
        (with_credit(), "380", "95.20"),
        (correction(), "381", "5.95"),
    ],
)
def test_a_pdf_contains_an_einvoice_that_matches_the_schema(
    document_: InvoiceDocument, kind: str, total: str
) -> None:
    pdf = render_pdf(for_einvoice(document_))

    name, xml = get_facturx_xml_from_pdf(pdf, check_xsd=True)

    assert name == "factur-x.xml"
    einvoice = ElementTree.fromstring(xml)  # noqa: S314  # our own document
    assert einvoice.findtext(".//{*}ExchangedDocument/{*}TypeCode") == kind
    assert einvoice.findtext(".//{*}DuePayableAmount") == total
    assert einvoice.findtext(".//{*}SellerTradeParty//{*}CountryID") == "DE"
    # Nobody pays a credit note, so it names no bank account.
    assert einvoice.findtext(".//{*}IBANID") == (
        None if kind == "381" else "DE02120300000000202051"
    )


def test_an_einvoice_has_the_same_bytes_at_another_time(monkeypatch: pytest.MonkeyPatch) -> None:
    first = render_pdf(for_einvoice(document(USAGE)))
    monkeypatch.setattr(facturx, "datetime", _OtherDay)

    assert render_pdf(for_einvoice(document(USAGE))) == first


class _OtherDay(datetime):
    @classmethod
    def now(cls, tz: tzinfo | None = None) -> "_OtherDay":
        return cls(2031, 5, 4, 3, 2, 1, tzinfo=tz)


@pytest.mark.parametrize(
    ("changed", "missing"),
    [
        ({"customer": InvoiceParty("I")}, ["customer_country"]),
        ({"issuer": InvoiceParty("I", country="DE")}, ["issuer_tax_id"]),
        ({"tax": InvoiceTax("", 0)}, ["tax"]),
    ],
)
def test_a_document_without_all_details_has_no_einvoice(
    changed: dict[str, Any], missing: list[str]
) -> None:
    document_ = for_einvoice(document(USAGE))
    lacking = msgspec.structs.replace(
        document_, head=msgspec.structs.replace(document_.head, **changed)
    )

    assert list_missing_fields(document_) == []
    assert list_missing_fields(lacking) == missing
    assert b"factur-x.xml" not in render_pdf(lacking)


def test_fields_that_were_added_later_are_omitted_if_empty() -> None:
    """Otherwise, documents that were issued without these fields would get other bytes."""
    text = encode_document(document(USAGE)).decode()

    assert '"bank"' not in text
    assert '"country"' not in text
    assert '"customer":{"address":["ul. Piotrkowska 104"],"email":"","name":' in text


def test_a_logo_is_printed_only_if_one_is_given(tmp_path: Path) -> None:
    logo = tmp_path / "logo.png"
    Image.new("RGB", (400, 100), "navy").save(logo)

    assert b"/Subtype /Image" in render_pdf(document(USAGE), logo=logo)
    assert b"/Subtype /Image" not in render_pdf(document(USAGE))


def test_another_amount_gives_another_pdf() -> None:
    assert render_pdf(document(USAGE)) != render_pdf(document(USAGE[1:]))


def test_names_are_not_markup_and_long_invoices_have_several_pages() -> None:
    usage = [
        UsageLine(code, date(2026, month, 1), 10_000_000, price, 1_500_000)
        for code in TIER_LINES
        for month in range(1, 11)
        for price in (150_000, 160_000)
    ]

    document_ = render_pdf(
        document(usage, customer=InvoiceParty("<b>&</b><img src='file:///etc/passwd'/>"))
    )

    assert document_.startswith(b"%PDF")
    assert document_.count(b"/Type /Page\n") > 2


@pytest.mark.parametrize("kind", list(DocumentKind))
def test_a_decoded_document_is_the_same(kind: DocumentKind) -> None:
    document_ = correction() if kind is DocumentKind.CREDIT_NOTE else document(USAGE)

    decoded = msgspec.json.decode(encode_document(document_), type=InvoiceDocument)

    assert encode_document(decoded) == encode_document(document_)
