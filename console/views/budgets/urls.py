"""Addresses of the budgets' pages."""

from django.urls import URLPattern, path

from console.views.budgets import budget, budgets, new

urlpatterns: list[URLPattern] = [
    path("budgets", budgets.budgets, name="budgets"),
    path("budgets/new", new.new, name="budgets-new"),
    path("budgets/<uuid:budget_id>", budget.budget, name="budgets-budget"),
    path("budgets/<uuid:budget_id>/change", budget.change, name="budgets-change"),
    path("budgets/<uuid:budget_id>/versions/<int:version>/undo", budget.undo, name="budgets-undo"),
    path("budgets/<uuid:budget_id>/secret", budget.secret, name="budgets-secret"),
    path("budgets/<uuid:budget_id>/delete", budget.delete, name="budgets-delete"),
]
