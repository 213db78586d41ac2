"""The rules of a policy that an installation cannot enforce now, or could not in the past."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from tenants.fleet.pools.scraping.installation_status import find_capabilities
from tenants.fleet.pools.scraping.metric_samples import MetricSamples, parse_metrics
from tenants.policy.availability.enforcement import (
    Capabilities,
    Capability,
    UnavailablePeriod,
    find_unavailable_periods,
    find_unenforced,
    find_unenforced_periods,
)
from tenants.policy.document import DEFAULT_POLICY

FILTERING = msgspec.structs.replace(DEFAULT_POLICY, has_public_code_filter=True)
START = datetime(2026, 11, 1, tzinfo=UTC)
END_OF_TIME = datetime.max.replace(tzinfo=UTC)


def day(number: int) -> datetime:
    return START + timedelta(days=number)


@pytest.mark.parametrize("capability", Capability)
def test_only_a_missing_capability_that_the_policy_needs_is_reported(
    capability: Capability,
) -> None:
    capabilities = Capabilities(missing=frozenset({capability}), regions=())
    expected = {Capability.PUBLIC_CODE_FILTER: ["has_public_code_filter"]}

    assert find_unenforced(DEFAULT_POLICY, capabilities) == []
    assert find_unenforced(FILTERING, capabilities) == expected.get(capability, [])


def test_no_period_is_unavailable_before_the_first_report() -> None:
    assert find_unavailable_periods([]) == []
    assert find_unavailable_periods([(True, day(1))]) == []


def test_a_period_lasts_until_the_capability_is_back() -> None:
    # Each change says whether the capability is available from this time on.
    changes = [(False, day(1)), (True, day(3)), (False, day(5))]

    assert find_unavailable_periods(changes) == [
        UnavailablePeriod(day(1), day(3)),
        UnavailablePeriod(day(5), END_OF_TIME),
    ]


def test_periods_are_cut_to_the_time_in_which_the_policy_version_was_in_force() -> None:
    history = {"has_public_code_filter": find_unavailable_periods([(False, day(1))])}

    periods = find_unenforced_periods(FILTERING, history, starts_at=day(2), ends_at=day(4))

    assert periods == {"has_public_code_filter": [UnavailablePeriod(day(2), day(4))]}
    assert find_unenforced_periods(DEFAULT_POLICY, history, starts_at=day(2), ends_at=day(4)) == {}
    assert find_unenforced_periods(FILTERING, history, starts_at=day(0), ends_at=day(1)) == {}


def _samples(*, has_index: bool, region: str = "eu") -> MetricSamples:
    return parse_metrics(
        f'caret_gateway_capability{{capability="public_code_filter"}} {int(has_index)}\n'
        'caret_gateway_capability{capability="of a newer version"} 1\n'
        f'caret_gateway_region{{region="{region}"}} 1\n'
    )


def test_a_capability_that_one_gateway_lacks_is_missing() -> None:
    capabilities = find_capabilities(
        [_samples(has_index=True), _samples(has_index=False, region="us")]
    )

    assert capabilities == {"public_code_filter": False, "region:eu": True, "region:us": True}
