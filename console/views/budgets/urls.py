"""URLs of the budgets' pages."""

from django.urls import URLPattern, path

from console.views.budgets import detail
from console.views.budgets import list as list_page

urlpatterns: list[URLPattern] = [
    path("budgets", list_page.budgets, name="budgets"),
    path("budgets/new", list_page.new, name="budgets-new"),
    path("budgets/<uuid:budget_id>", detail.budget, name="budgets-budget"),
    path("budgets/<uuid:budget_id>/edit", detail.change, name="budgets-change"),
    path("budgets/<uuid:budget_id>/versions/<int:version>/undo", detail.undo, name="budgets-undo"),
    path("budgets/<uuid:budget_id>/secret", detail.secret, name="budgets-secret"),
    path("budgets/<uuid:budget_id>/delete", detail.delete, name="budgets-delete"),
]
