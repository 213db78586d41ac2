"""URLs of the billing pages."""

from django.urls import URLPattern, path

from console.views.billing import billing_profile, detail, invoices, ledger

urlpatterns: list[URLPattern] = [
    path("billing", detail.billing, name="billing"),
    path("billing/ledger", ledger.ledger, name="billing-ledger"),
    path("billing/invoices", invoices.invoices, name="billing-invoices"),
    path("billing/invoices/<int:number>", invoices.invoice, name="billing-invoice"),
    path("billing/invoices/<int:number>/pdf", invoices.pdf, name="billing-invoice-pdf"),
    path("billing/invoices/<int:number>/json", invoices.as_json, name="billing-invoice-json"),
    path("billing/profile", billing_profile.profile, name="billing-profile"),
    path("billing/profile/edit", billing_profile.edit, name="billing-edit-profile"),
]
