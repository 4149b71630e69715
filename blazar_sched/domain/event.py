# SPDX-License-Identifier: Apache-2.0
"""An event: a planned transition of a lease."""

import dataclasses

START_LEASE = 'start_lease'
BEFORE_END_LEASE = 'before_end_lease'
END_LEASE = 'end_lease'

# At one instant what ends makes room for what starts.
ORDER = (BEFORE_END_LEASE, END_LEASE, START_LEASE)


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """`time` is when it is due; `status` is one of domain.states's."""

    id: str
    lease_id: str
    event_type: str
    time: int
    status: str
    created_at: int | None = None
    updated_at: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Claim:
    """Under which an event is done.

    `token` tells it from every other claim; `until` is the owner's own idea
    of when it runs out, and changes whenever it renews the claim.
    """

    owner: str
    token: str
    until: int
