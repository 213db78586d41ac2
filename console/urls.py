"""The URLs of the console's pages, of the health check and of the public signing keys."""

from django.urls import path

from console.views import export_download, playground, system
from console.views.account import urls as account
from console.views.audit import urls as audit
from console.views.audit_sinks import urls as audit_sinks
from console.views.billing import urls as billing
from console.views.budgets import urls as budgets
from console.views.cache import urls as cache
from console.views.content_exclusion import urls as content_exclusion
from console.views.device_sign_in import urls as device_sign_in
from console.views.editors import urls as editors
from console.views.experiments import urls as experiments
from console.views.exports import urls as exports
from console.views.help import urls as help_pages
from console.views.keys import urls as keys
from console.views.members import urls as members
from console.views.my_data import urls as my_data
from console.views.my_keys import urls as my_keys
from console.views.onboarding import urls as onboarding
from console.views.overview import urls as overview
from console.views.policies import urls as policies
from console.views.privacy import urls as privacy
from console.views.retention import urls as retention
from console.views.sign_in import urls as sign_in
from console.views.sign_in_settings import urls as sign_in_settings
from console.views.teams import urls as teams
from console.views.usage import urls as usage

app_name = "console"
urlpatterns = [
    *overview.urlpatterns,
    *usage.urlpatterns,
    *experiments.urlpatterns,
    *cache.urlpatterns,
    *account.urlpatterns,
    *my_keys.urlpatterns,
    *device_sign_in.urlpatterns,
    *audit.urlpatterns,
    *billing.urlpatterns,
    *budgets.urlpatterns,
    *exports.urlpatterns,
    *audit_sinks.urlpatterns,
    *policies.urlpatterns,
    *content_exclusion.urlpatterns,
    *my_data.urlpatterns,
    *privacy.urlpatterns,
    *retention.urlpatterns,
    *sign_in.urlpatterns,
    *onboarding.urlpatterns,
    *editors.urlpatterns,
    *help_pages.urlpatterns,
    *keys.urlpatterns,
    *members.urlpatterns,
    *teams.urlpatterns,
    *sign_in_settings.urlpatterns,
    path("playground", playground.playground, name="playground"),
    path("playground/start", playground.start, name="playground-start"),
    path("playground/end", playground.end, name="playground-end"),
    path("exports/file/<token>", export_download.export_file, name="export-file"),
    path("healthz", system.healthz, name="healthz"),
    path(".well-known/caret-signing-keys.json", system.public_keys, name="signing-keys"),
]
