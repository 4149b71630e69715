# SPDX-License-Identifier: Apache-2.0
"""Each occurrence of a series is booked once, or is known to be missing."""

import collections
import datetime

from blazar_sched.parts.series import models
from tests.simulation.promises import registry

HOUR = 3600
# Seconds by which the clocks of managers may differ.
SKEW = 120


@registry.promise_of_ledger()
def an_occurrence_is_booked_once(world):
    times = collections.Counter(
        (lease.series_id, lease.occurrence)
        for lease in world.ledger.leases() if lease.series_id is not None
    )
    for (id_, occurrence), count in times.items():
        if count > 1:
            yield f'occurrence {occurrence} of {id_} has {count} leases'


@registry.promise_of_ledger()
def a_series_is_booked(world):
    """No occurrence is left out of what a series is booked up to."""
    for lease in world.ledger.leases():
        if lease.series_id is not None:
            world.series.seen[lease.series_id].add(lease.occurrence)
    for series in world.ledger.run(models.list_):
        seen, covered = (
            known[series.id]
            for known in (world.series.seen, world.series.covered)
        )
        for name, at in _occurrences(series):
            if (
                series.created_at <= at < series.booked_until
                and name not in covered
            ):
                covered.add(name)
                # An occurrence that a late manager has passed is left out.
                if at > world.time + SKEW and name not in (
                    seen | set(series.missing)
                ):
                    yield f'occurrence {name} of {series} was left out'


def _occurrences(series):
    """Yield the names and the starts, which recur hourly in UTC."""
    start = datetime.datetime.fromisoformat(f'{series.start}+00:00')
    for number in range(int(series.rrule.rpartition('=')[2])):
        at = start + datetime.timedelta(hours=number)
        name = at.replace(tzinfo=None)
        yield (
            name.isoformat(timespec='seconds' if at.second else 'minutes'),
            at.timestamp(),
        )
