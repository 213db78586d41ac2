"""PDF rendering of invoices and credit notes, in A4.

The same document and logo give the same bytes. For this, reportlab's invariant mode writes a fixed
time instead of the current one. The typeface is embedded, so that Latin, Greek and Cyrillic names
are printed correctly.
"""

from collections.abc import Sequence
from datetime import date
from functools import cache
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape

from reportlab.lib.colors import Color, HexColor
from reportlab.lib.enums import TA_RIGHT
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import (
    BaseDocTemplate,
    Flowable,
    Frame,
    Image,
    KeepTogether,
    PageTemplate,
    Paragraph,
    Spacer,
    Table,
    TableStyle,
)

from tenants.base.money import MICROS_PER_CENT, format_amount, format_price
from tenants.billing.invoices.document import (
    SEATS,
    BankAccount,
    DocumentKind,
    InvoiceDocument,
    InvoiceLine,
    InvoiceParty,
)
from tenants.billing.invoices.einvoice import embed_xml, list_missing_fields

_REGULAR, _MEDIUM = "Roboto", "Roboto-Medium"
_MARGIN: Final = 20 * mm
_WIDTH: Final = A4[0] - 2 * _MARGIN
_LOGO_WIDTH, _LOGO_HEIGHT = 60 * mm, 18 * mm  # the logo is scaled to fit into this box
_INK, _GREY, _RULE = HexColor("#1b1f24"), HexColor("#5f6b7a"), HexColor("#d5dae0")
_ACCENT: Final = HexColor("#2f5bd3")
_TITLES: Final = {DocumentKind.INVOICE: "Invoice", DocumentKind.CREDIT_NOTE: "Credit note"}
# In the TableStyles below, a command applies to the cells from one (column, row) to another. They
# count from 0; -1 is the last one.


def render_pdf(document: InvoiceDocument, *, logo: Path | None = None) -> bytes:
    """Return the PDF. It contains an e-invoice's XML if the document has all required fields.

    `logo` is a PNG or JPEG file for the first page.
    """
    pdf = _render_pages(document, logo)
    return pdf if list_missing_fields(document) else embed_xml(pdf, document)


def _render_pages(document: InvoiceDocument, logo: Path | None) -> bytes:
    _register_typeface()
    out = BytesIO()
    pages = BaseDocTemplate(
        out,
        pagesize=A4,
        leftMargin=_MARGIN,
        rightMargin=_MARGIN,
        topMargin=18 * mm,
        bottomMargin=26 * mm,
        title=f"{_TITLES[document.head.kind]} {document.head.number}",
        author=document.head.issuer.name,
        subject=document.head.customer.name,
        creator="Caret",
        invariant=1,
    )
    no_padding = (0, 0, 0, 0)
    frame = Frame(
        pages.leftMargin, pages.bottomMargin, pages.width, pages.height, *no_padding, id="body"
    )
    footer = _Footer(document)
    pages.addPageTemplates(PageTemplate(id="page", frames=[frame], onPage=footer))
    pages.build(_build_story(document, logo))
    return out.getvalue()


@cache
def _register_typeface() -> None:
    folder = files("font_roboto") / "files"
    for name, file in ((_REGULAR, "Roboto-Regular.ttf"), (_MEDIUM, "Roboto-Medium.ttf")):
        pdfmetrics.registerFont(TTFont(name, BytesIO((folder / file).read_bytes())))


def _paragraph(
    text: str, *, colour: Color = _INK, is_strong: bool = False, **fields: Any
) -> Paragraph:
    font = _MEDIUM if is_strong else _REGULAR
    fields = {"fontSize": 9, "leading": 13, **fields}
    return Paragraph(escape(text), ParagraphStyle("", fontName=font, textColor=colour, **fields))


def _label_paragraph(text: str, **fields: Any) -> Paragraph:
    return _paragraph(text, colour=_GREY, fontSize=7.5, leading=11, **fields)


def _build_story(document: InvoiceDocument, logo: Path | None) -> list[Flowable]:
    return [
        _build_heading(document, logo),
        Spacer(0, 11 * mm),
        _build_parties(document),
        Spacer(0, 10 * mm),
        _build_lines(document),
        Spacer(0, 4 * mm),
        KeepTogether([_build_totals(document), Spacer(0, 10 * mm), *_build_closing(document)]),
    ]


def _build_heading(document: InvoiceDocument, logo: Path | None) -> Table:
    head = document.head
    name = _paragraph(head.issuer.name, is_strong=True, fontSize=13, leading=17)
    left_column: list[Flowable] = (
        [name] if logo is None else [_build_logo(logo), Spacer(0, 2 * mm), name]
    )
    left_column += [_label_paragraph(line) for line in head.issuer.address]
    if head.issuer.tax_id:
        left_column.append(_label_paragraph(f"Tax ID {head.issuer.tax_id}"))
    right = [
        _paragraph(
            _TITLES[head.kind],
            is_strong=True,
            colour=_ACCENT,
            fontSize=20,
            leading=24,
            alignment=TA_RIGHT,
        ),
        _paragraph(head.number, colour=_GREY, alignment=TA_RIGHT),
    ]
    return Table([[left_column, right]], [_WIDTH * 0.55, _WIDTH * 0.45], style=_make_plain_style())


def _build_logo(logo: Path) -> Image:
    image = Image(logo, hAlign="LEFT")
    scale = min(_LOGO_WIDTH / image.imageWidth, _LOGO_HEIGHT / image.imageHeight)
    image.drawWidth, image.drawHeight = image.imageWidth * scale, image.imageHeight * scale
    return image


def _build_parties(document: InvoiceDocument) -> Table:
    head = document.head
    customer = [_label_paragraph("Bill to"), *_build_party(head.customer)]
    facts: list[tuple[str, str]] = [("Issued", _format_day(head.issued_on))]
    if head.kind is DocumentKind.INVOICE:
        facts += [("Due", _format_day(head.due_on)), ("Period (UTC)", _format_month(head.month))]
    else:
        facts += [("Corrects", head.corrects)]
    facts += [("Currency", head.currency)]
    table = Table(
        [[_label_paragraph(name), _paragraph(value, alignment=TA_RIGHT)] for name, value in facts],
        [_WIDTH * 0.17, _WIDTH * 0.28],
        style=TableStyle(
            [
                ("LEFTPADDING", (0, 0), (-1, -1), 0),
                ("RIGHTPADDING", (0, 0), (-1, -1), 0),
                ("TOPPADDING", (0, 0), (-1, -1), 2),
                ("BOTTOMPADDING", (0, 0), (-1, -1), 2),
                ("VALIGN", (0, 0), (-1, -1), "MIDDLE"),
                ("LINEBELOW", (0, 0), (-1, -2), 0.4, _RULE),
            ]
        ),
    )
    return Table([[customer, table]], [_WIDTH * 0.55, _WIDTH * 0.45], style=_make_plain_style())


def _build_party(party: InvoiceParty) -> list[Paragraph]:
    lines = [_paragraph(line) for line in party.address]
    if party.tax_id:
        lines.append(_paragraph(f"Tax ID {party.tax_id}", colour=_GREY))
    return [_paragraph(party.name, is_strong=True, fontSize=10, leading=14), *lines]


def _build_lines(document: InvoiceDocument) -> Table:
    titles = ("Description", "Quantity", "Unit price", f"Amount ({document.head.currency})")
    head = [
        _label_paragraph(titles[0]),
        *(_label_paragraph(title, alignment=TA_RIGHT) for title in titles[1:]),
    ]
    rows = [_build_row(line, document) for line in document.lines]
    return Table(
        [head, *rows],
        [_WIDTH * share for share in (0.43, 0.19, 0.2, 0.18)],
        repeatRows=1,
        style=TableStyle(
            [
                ("LEFTPADDING", (0, 0), (0, -1), 0),
                ("RIGHTPADDING", (-1, 0), (-1, -1), 0),
                ("TOPPADDING", (0, 0), (-1, -1), 5),
                ("BOTTOMPADDING", (0, 0), (-1, -1), 5),
                ("VALIGN", (0, 0), (-1, -1), "TOP"),
                ("LINEBELOW", (0, 0), (-1, 0), 0.9, _INK),
                ("LINEBELOW", (0, 1), (-1, -1), 0.4, _RULE),
            ]
        ),
    )


def _build_row(line: InvoiceLine, document: InvoiceDocument) -> list[Any]:
    description = [_paragraph(line.description)]
    if line.used_in != document.head.month:
        description.append(
            _label_paragraph(f"Used in {_format_month(line.used_in)}, reported late")
        )
    return [
        description,
        _build_quantity(line),
        _build_price(line),
        _paragraph(_format_cents(line.amount_cents), alignment=TA_RIGHT),
    ]


def _build_quantity(line: InvoiceLine) -> list[Paragraph]:
    if not line.unit:
        return []  # a correction, which is a single amount
    return [
        _paragraph(f"{line.quantity:,}", alignment=TA_RIGHT),
        _label_paragraph(line.unit, alignment=TA_RIGHT),
    ]


def _build_price(line: InvoiceLine) -> list[Paragraph]:
    if not line.unit:
        return []  # a correction, which is a single amount
    basis = "per seat and month" if line.code == SEATS else f"per {line.price_for:,}"
    return [
        _paragraph(format_price(line.price_micros), alignment=TA_RIGHT),
        _label_paragraph(basis, alignment=TA_RIGHT),
    ]


def _build_totals(document: InvoiceDocument) -> Table:
    tax, currency = document.head.tax, document.head.currency
    rows: list[tuple[str, int]] = [("Subtotal", document.subtotal_cents)]
    if document.credit_cents:
        rows.append(("Credit applied", -document.credit_cents))
    if tax.name:
        percent = f"{tax.basis_points / 100:g}%"
        rows.append((f"{tax.name} {percent}", document.tax_cents))
    cells = [
        [_paragraph(name), _paragraph(_format_cents(cents), alignment=TA_RIGHT)]
        for name, cents in rows
    ]
    name = "Total" if document.total_cents >= 0 else "Total credited"
    strong: dict[str, Any] = {"is_strong": True, "fontSize": 11, "leading": 15}
    cells.append(
        [
            _paragraph(f"{name} ({currency})", **strong),
            _paragraph(_format_cents(document.total_cents), alignment=TA_RIGHT, **strong),
        ]
    )
    table = Table(
        cells,
        [_WIDTH * 0.27, _WIDTH * 0.18],
        style=TableStyle(
            [
                ("LEFTPADDING", (0, 0), (-1, -1), 0),
                ("RIGHTPADDING", (0, 0), (-1, -1), 0),
                ("TOPPADDING", (0, 0), (-1, -1), 3),
                ("BOTTOMPADDING", (0, 0), (-1, -1), 3),
                ("LINEABOVE", (0, -1), (-1, -1), 0.9, _INK),
                ("TOPPADDING", (0, -1), (-1, -1), 6),
            ]
        ),
    )
    return Table([["", table]], [_WIDTH * 0.55, _WIDTH * 0.45], style=_make_plain_style())


def _build_closing(document: InvoiceDocument) -> Sequence[Flowable]:
    """Return how to pay an invoice, or which invoice a credit note corrects."""
    head = document.head
    if head.kind is DocumentKind.CREDIT_NOTE:
        return [_paragraph(f"This amount is credited against invoice {head.corrects}.")]
    if document.total_cents == 0:
        return [_paragraph("No payment is due.")]
    amount = f"{head.currency} {_format_cents(document.total_cents)}"
    due = f"Please pay {amount} by {_format_day(head.due_on)}"
    return [
        _paragraph("Payment", is_strong=True),
        _paragraph(f"{due}, with the reference {head.number}."),
        *_build_bank(head.bank),
        *(_paragraph(line) for line in head.payment),
    ]


def _build_bank(account: BankAccount | None) -> list[Paragraph]:
    if account is None:
        return []
    facts = (f"IBAN {account.iban}", account.bic and f"BIC {account.bic}", account.bank)
    return [_paragraph("  ·  ".join(filter(None, facts)))]


class _Footer:
    """The footer of each page: the issuer, the document's number and the page number."""

    def __init__(self, document: InvoiceDocument) -> None:
        issuer = document.head.issuer
        parts = (issuer.name, *issuer.address, issuer.tax_id, issuer.email)
        self._issuer = "  ·  ".join(part for part in parts if part)
        self._number = document.head.number

    def __call__(self, canvas: Canvas, pages: BaseDocTemplate) -> None:
        canvas.saveState()
        canvas.setStrokeColor(_RULE)
        canvas.setLineWidth(0.4)
        canvas.line(_MARGIN, 19 * mm, A4[0] - _MARGIN, 19 * mm)
        issuer = _label_paragraph(self._issuer)
        _, height = issuer.wrap(_WIDTH * 0.75, 12 * mm)
        issuer.drawOn(canvas, _MARGIN, 17 * mm - height)
        number = _label_paragraph(f"{self._number}  ·  page {pages.page}", alignment=TA_RIGHT)
        _, height = number.wrap(_WIDTH * 0.25, 12 * mm)
        number.drawOn(canvas, _MARGIN + _WIDTH * 0.75, 17 * mm - height)
        canvas.restoreState()


def _make_plain_style() -> TableStyle:
    return TableStyle(
        [
            ("LEFTPADDING", (0, 0), (-1, -1), 0),
            ("RIGHTPADDING", (0, 0), (-1, -1), 0),
            ("TOPPADDING", (0, 0), (-1, -1), 0),
            ("BOTTOMPADDING", (0, 0), (-1, -1), 0),
            ("VALIGN", (0, 0), (-1, -1), "TOP"),
        ]
    )


def _format_cents(cents: int) -> str:
    return format_amount(cents * MICROS_PER_CENT).replace("-", "\N{MINUS SIGN}")


def _format_day(iso_date: str) -> str:
    day = date.fromisoformat(iso_date)
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def _format_month(iso_date: str) -> str:
    month = date.fromisoformat(iso_date)
    return f"{_MONTHS[month.month - 1]} {month.year}"


# The names that strftime writes depend on the machine's locale.
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
