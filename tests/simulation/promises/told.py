# SPDX-License-Identifier: Apache-2.0
"""Every requested announcement of an end is sent, and sent once."""

from collections import Counter

from blazar_sched.domain import states
from tests.simulation import looks
from tests.simulation import outside
from tests.simulation.promises import registry


@registry.promise_of_ledger()
def everybody_is_told_of_the_end(world):
    """Each lease that came to its end was announced, with that end."""
    for r in world.book.reservations.values():
        if (
            r.before_end not in (outside.EMAIL, outside.WEBHOOK)
            or r.lease_status != states.LEASE_TERMINATED
            or r.notice is None or not r.opened or r.trouble
        ):
            continue
        ends = {looks.shown(r.end), looks.blazar_date(r.end)}
        if not any(
            (t.lease_id, t.how) == (r.lease_id, r.before_end)
            and t.about in ends
            for t in world.outside.told
        ):
            yield f'nobody was told by {r.before_end} of the end of {r}'


@registry.promise
def nobody_is_told_twice(world):
    """No end is announced twice, except after a failure and with the same key.
    """
    if not world.is_calm or 'away' in world.features:
        return
    told = Counter((t.how, t.key) for t in world.outside.told)
    for (how, key), times in told.items():
        if times > 1:
            yield f'told by {how} {times} times: {key}'
