"""E-invoices: the XML of an invoice or credit note by the standard EN 16931, in its PDF. Pure.

The XML is a Cross Industry Invoice. The resulting file conforms to Factur-X and ZUGFeRD in the
profile EN 16931. The library factur-x writes the XML, and validates it against the profile's XML
schema. The same document gives the same bytes, because the date of issue replaces the times that
the library writes.
"""

import re
from datetime import date
from typing import Any, Final

from facturx import generate_cii_xml, generate_from_binary

from tenants.base.billing_periods import ONE_DAY
from tenants.base.money import MICROS, MICROS_PER_CENT, format_amount
from tenants.billing.invoices.document import (
    DocumentKind,
    InvoiceDocument,
    InvoiceLine,
    InvoiceParty,
)

_LEVEL: Final = "en16931"  # the profile
# Codes of the UN/CEFACT lists that EN 16931 uses.
_TYPES: Final = {DocumentKind.INVOICE: "380", DocumentKind.CREDIT_NOTE: "381"}  # list UNTDID 1001
_PIECE: Final = "C62"  # a unit of recommendation 20
_CREDIT_TRANSFER: Final = "30"  # a means of payment of UNTDID 4461
_STANDARD_RATE: Final = "S"  # a tax category of UNTDID 5305
_VAT_ID: Final = re.compile(r"[A-Z]{2}[0-9A-Z]{2,13}")
# Times in a PDF, where the colon may be escaped, and in its XMP metadata.
_PDF_TIMES: Final = re.compile(rb"(D(?::|\\072))\d{14}")
_XMP_TIMES: Final = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


def list_missing_fields(document: InvoiceDocument) -> list[str]:
    """Return the names of the fields that the document lacks for an e-invoice."""
    head = document.head
    required = {
        "issuer_country": head.issuer.country,
        "issuer_tax_id": head.issuer.tax_id,
        "customer_country": head.customer.country,
        "tax": head.tax.name,  # without tax, a reason would be required, which Caret does not know
        "lines": document.lines,
    }
    return [name for name, value in required.items() if not value]


def build_xml(document: InvoiceDocument) -> bytes:
    """Return the XML of a document for which list_missing_fields returns nothing.

    Raises an exception of factur-x if the XML does not match the schema.
    """
    # The rules of EN 16931 that are not part of the schema (schematron) are not checked.
    xml: bytes = generate_cii_xml(
        _describe_document(document), level=_LEVEL, check_xsd=True, check_schematron=False
    )
    return xml


def embed_xml(pdf: bytes, document: InvoiceDocument) -> bytes:
    """Return the PDF with the document's XML in it. Raises the exceptions of build_xml."""
    head = document.head
    embedded: bytes = generate_from_binary(
        pdf,
        build_xml(document),
        flavor="factur-x",
        level=_LEVEL,
        check_xsd=False,  # build_xml has checked it
        lang="en",
        pdf_metadata={
            "author": head.issuer.name,
            "keywords": "Factur-X, EN 16931",
            "title": head.number,
            "subject": head.customer.name,
        },
        xmp_compression=False,  # because the times in it are replaced below
    )
    # The replacements have the same lengths, so byte positions in the PDF stay correct.
    midnight = head.issued_on.replace("-", "").encode() + b"000000"
    embedded = _PDF_TIMES.sub(lambda match: match[1] + midnight, embedded)
    return _XMP_TIMES.sub(f"{head.issued_on}T00:00:00".encode(), embedded)


def _describe_document(document: InvoiceDocument) -> dict[str, Any]:
    """Return the business terms of EN 16931, by their numbers in the standard.

    A credit note has negative amounts in the document, and positive ones in the e-invoice.
    """
    head = document.head
    sign = -1 if head.kind is DocumentKind.CREDIT_NOTE else 1
    net_cents = document.subtotal_cents - document.credit_cents
    last_day = date.fromisoformat(document.period_until) - ONE_DAY
    terms: dict[str, Any] = {
        "BT-1": head.number,
        "BT-2": head.issued_on,
        "BT-3": _TYPES[head.kind],
        "BT-5": head.currency,
        "BT-72": last_day.isoformat(),  # the schema also requires a delivery date
        "BT-73": document.period_from,
        "BT-74": last_day.isoformat(),
        "BT-106": _write_cents(sign * document.subtotal_cents),  # sum of the lines
        "BT-109": _write_cents(sign * net_cents),  # total before tax
        "BT-110": _write_cents(sign * document.tax_cents),
        "BT-112": _write_cents(sign * document.total_cents),  # total with tax
        "BT-115": _write_cents(sign * document.total_cents),  # amount to pay
        "BG-4": _describe_party(head.issuer),
        "BG-7": _describe_party(head.customer),
        "BG-23": [  # the tax of each rate
            {
                "BT-116": _write_cents(sign * net_cents),
                "BT-117": _write_cents(sign * document.tax_cents),
                "BT-118": _STANDARD_RATE,
                "BT-119": _write_rate(document),
            }
        ],
        "BG-25": [
            _describe_line(line, number, sign, document)
            for number, line in enumerate(document.lines, start=1)
        ],
    }
    if head.kind is DocumentKind.CREDIT_NOTE:
        # BG-3: the corrected invoice. BG-1: a note.
        return terms | {"BG-3": [{"BT-25": head.corrects}], "BG-1": [{"BT-22": head.reason}]}
    return terms | _describe_payment(document) | _describe_credit(document)


def _describe_payment(document: InvoiceDocument) -> dict[str, Any]:
    head = document.head
    # BT-83: the reference for the payment. BT-20: the payment terms.
    terms: dict[str, Any] = {"BT-9": head.due_on, "BT-83": head.number}
    if head.payment:
        terms["BT-20"] = "\n".join(head.payment)
    if head.bank is not None:
        terms |= {
            "BT-81": _CREDIT_TRANSFER,
            "BT-84": head.bank.iban.replace(" ", ""),
            "BT-85": head.issuer.name,
        }
        if head.bank.bic:
            terms["BT-86"] = head.bank.bic
    return terms


def _describe_credit(document: InvoiceDocument) -> dict[str, Any]:
    """Return the terms for used credit: an allowance, because it reduces the taxable amount."""
    if not document.credit_cents:
        return {}
    credit = _write_cents(document.credit_cents)
    allowance = {
        "amount": credit,
        "reason": "Credit applied",
        "vat_category_code": _STANDARD_RATE,
        "vat_rate": _write_rate(document),
    }
    return {"BT-107": credit, "BG-20": [allowance]}


def _describe_line(
    line: InvoiceLine, number: int, sign: int, document: InvoiceDocument
) -> dict[str, Any]:
    """Return the terms of a line.

    A line of tokens has the number of tokens and their price. Any other line is one piece with the
    amount as its price: seats are counted by day and priced by month, so their number times their
    price is not the amount. `sign` is -1 for a credit note.
    """
    amount_cents = sign * line.amount_cents
    is_tokens = line.price_for > 1  # only the price of tokens is for more than one unit
    # Prices must not be negative. So a line that reduces the sum has a negative quantity.
    piece = "-1" if amount_cents < 0 else "1"
    used_month = line.used_in[:7]  # such as 2026-11
    return {
        "BT-126": str(number),
        "BT-129": str(line.quantity) if is_tokens else piece,
        "BT-130": _PIECE,
        "BT-131": _write_cents(amount_cents),
        "BT-146": _write_price(line) if is_tokens else _write_cents(abs(amount_cents)),
        "BT-149": str(line.price_for) if is_tokens else "1",  # the price is for this quantity
        "BT-151": _STANDARD_RATE,
        "BT-152": _write_rate(document),
        "BT-153": line.description,
        "BT-154": f"{line.quantity} {line.unit}, used in {used_month}" if line.unit else "",
    }


def _describe_party(party: InvoiceParty) -> dict[str, Any]:
    """Return the terms of an issuer or customer.

    Caret stores an address as lines without meaning, so it is written as address lines. The third
    address line contains the rest of the address.
    """
    lines = (*party.address, "", "", "")
    tax_id = party.tax_id.replace(" ", "").upper()
    is_vat_id = _VAT_ID.fullmatch(tax_id) is not None
    fields = {
        "name": party.name,
        "country_code": party.country,
        "addr_l1": lines[0],
        "addr_l2": lines[1],
        "addr_l3": ", ".join(filter(None, lines[2:])),
        "vat_identifier" if is_vat_id else "tax_identifier": tax_id,
    }
    if party.email:
        fields |= {"einvoicing_addr": party.email, "einvoicing_addr_schemeid": "EM"}  # EM: e-mail
    return {name: text for name, text in fields.items() if text}


def _write_cents(cents: int) -> str:
    return format_amount(cents * MICROS_PER_CENT).replace(",", "")


def _write_price(line: InvoiceLine) -> str:
    """Return the price with six decimals, because it is in micros."""
    return f"{line.price_micros // MICROS}.{line.price_micros % MICROS:06}"


def _write_rate(document: InvoiceDocument) -> str:
    """Return the tax rate in percent."""
    percent, hundredths = divmod(document.head.tax.basis_points, 100)
    return f"{percent}.{hundredths:02}"
