"""Changes of the gateways' capabilities are recorded.

An export of policies can therefore say when a rule was not enforced.
"""

from datetime import UTC, datetime, timedelta

from django.utils import timezone

from tenants.compliance.exports.definitions.policies_and_consent import POLICIES
from tenants.compliance.exports.rows import Period, RowQuery
from tenants.fleet.pools.scraping.gateway_scraper import Scrape
from tenants.fleet.pools.scraping.installation_status import record_capabilities
from tenants.fleet.pools.scraping.metric_samples import parse_metrics
from tenants.models import CapabilityChange
from tenants.policy.availability.enforcement import Capability, read_capabilities
from tenants.policy.document import DEFAULT_POLICY, serialize_policy
from tenants.policy.operations import set_policy
from tests.fixtures.companies import ACME_PEOPLE, make_company


def _scrape(*, has_index: bool, region: str = "eu") -> Scrape:
    """Return metrics of a gateway that has the index of its public-code filter, or lacks it."""
    samples = parse_metrics(
        f'caret_gateway_capability{{capability="public_code_filter"}} {int(has_index)}\n'
        f'caret_gateway_region{{region="{region}"}} 1\n'
    )
    return Scrape("http://gateway", samples, "")


def test_only_changes_are_recorded_and_an_unreachable_gateway_changes_nothing() -> None:
    record_capabilities([_scrape(has_index=False)], now=timezone.now())
    num_changes = CapabilityChange.objects.count()

    record_capabilities([_scrape(has_index=False)], now=timezone.now())
    record_capabilities([Scrape("http://gateway", None, "away")], now=timezone.now())

    assert CapabilityChange.objects.count() == num_changes
    assert Capability.PUBLIC_CODE_FILTER in read_capabilities().missing

    record_capabilities([_scrape(has_index=True, region="us")], now=timezone.now())

    capabilities = read_capabilities()
    assert Capability.PUBLIC_CODE_FILTER not in capabilities.missing
    assert "us" in capabilities.regions
    assert "eu" not in capabilities.regions


def test_the_export_says_when_a_rule_was_not_enforced() -> None:
    acme = make_company("acme", ACME_PEOPLE)
    actor = acme.administrator.actor
    policy_with_rule = serialize_policy(DEFAULT_POLICY) | {"has_public_code_filter": True}
    # The policy had the rule from day 1 to day 5, and gateways lacked the capability from day 3 to
    # day 9. This was long ago, so that no other test records anything in between.
    for number, document in ((1, policy_with_rule), (5, serialize_policy(DEFAULT_POLICY))):
        set_policy(actor=actor, document=document, reason="test", now=_day(number))
    for number, is_available in ((0, True), (3, False), (9, True)):
        CapabilityChange.objects.get_or_create(
            capability=Capability.PUBLIC_CODE_FILTER,
            since=_day(number),
            defaults={"is_available": is_available},
        )

    now = timezone.now()
    query = RowQuery(actor, Period(_day(0), now + timedelta(days=1)), now)
    rows = POLICIES.source.read(query, after=None).rows

    # The first column is the policy version. The last one names rules that were not enforced.
    assert {row[0]: row[-1] for row in rows} == {
        1: "",
        2: "not enforced: has_public_code_filter "
        "2020-01-03T00:00:00+00:00 to 2020-01-05T00:00:00+00:00",
        3: "",
    }


def _day(number: int) -> datetime:
    """Return the start of a day of January 2020; 0: the day before."""
    return datetime(2020, 1, 1, tzinfo=UTC) + timedelta(days=number - 1)
