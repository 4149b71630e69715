# SPDX-License-Identifier: Apache-2.0
"""The states of a lease, a reservation and an event: constants only.

The allowed changes of state are in domain.state_machine. The values are those
of the v1 API: clients read them, so never change a value.
"""

# A held offer: a lease that was not accepted yet.
LEASE_CREATING = 'CREATING'
LEASE_PENDING = 'PENDING'
LEASE_STARTING = 'STARTING'
LEASE_ACTIVE = 'ACTIVE'
LEASE_UPDATING = 'UPDATING'
LEASE_TERMINATING = 'TERMINATING'
LEASE_TERMINATED = 'TERMINATED'
LEASE_DELETING = 'DELETING'
LEASE_ERROR = 'ERROR'

# The states in which a lease can stay; the other states are on the way between
# these.
LEASE_STABLE = (LEASE_PENDING, LEASE_ACTIVE, LEASE_TERMINATED, LEASE_ERROR)
# The states of a lease that is not over.
LEASE_OPEN = (
    LEASE_CREATING, LEASE_PENDING, LEASE_STARTING, LEASE_ACTIVE,
    LEASE_UPDATING, LEASE_TERMINATING, LEASE_DELETING, LEASE_ERROR,
)

RESERVATION_PENDING = 'pending'
RESERVATION_ACTIVE = 'active'
RESERVATION_DELETED = 'deleted'
RESERVATION_ERROR = 'error'
# The states of a reservation that is not over.
RESERVATION_OPEN = (RESERVATION_PENDING, RESERVATION_ACTIVE, RESERVATION_ERROR)

EVENT_UNDONE = 'UNDONE'
EVENT_IN_PROGRESS = 'IN_PROGRESS'
EVENT_DONE = 'DONE'
EVENT_ERROR = 'ERROR'
