# SPDX-License-Identifier: Apache-2.0
"""The state machines of leases, reservations and events.

The events of a machine are named after the states that they lead to, because
the caller that changes a status names the wanted status.
"""

from collections.abc import Mapping
from collections.abc import Sequence

from automaton import machines

from blazar_sched.domain import exception
from blazar_sched.domain import states

LEASE = 'lease'
RESERVATION = 'reservation'
EVENT = 'event'


def _build(follows: Mapping[str, Sequence[str]]) -> machines.FiniteMachine:
    machine = machines.FiniteMachine.build(
        [
            {'name': old, 'next_states': {new: new for new in following}}
            for old, following in follows.items()
        ]
    )
    machine.freeze()
    return machine


MACHINES = {
    LEASE: _build(
        {
            states.LEASE_CREATING: (
                states.LEASE_PENDING,
                states.LEASE_DELETING,
            ),
            states.LEASE_PENDING: (
                states.LEASE_STARTING,
                states.LEASE_UPDATING,
                states.LEASE_DELETING,
            ),
            states.LEASE_STARTING: (
                states.LEASE_ACTIVE,
                states.LEASE_ERROR,
                states.LEASE_DELETING,
            ),
            states.LEASE_ACTIVE: (
                states.LEASE_TERMINATING,
                states.LEASE_UPDATING,
                states.LEASE_DELETING,
            ),
            states.LEASE_UPDATING: (
                *states.LEASE_STABLE,
                states.LEASE_DELETING,
            ),
            states.LEASE_TERMINATING: (
                states.LEASE_TERMINATED,
                states.LEASE_ERROR,
                states.LEASE_DELETING,
            ),
            states.LEASE_TERMINATED: (
                states.LEASE_UPDATING,
                states.LEASE_DELETING,
            ),
            states.LEASE_ERROR: (
                states.LEASE_TERMINATING,
                states.LEASE_UPDATING,
                states.LEASE_DELETING,
            ),
            states.LEASE_DELETING: (states.LEASE_ERROR,),
        }
    ),
    RESERVATION: _build(
        {
            states.RESERVATION_PENDING: (
                states.RESERVATION_ACTIVE,
                states.RESERVATION_DELETED,
                states.RESERVATION_ERROR,
            ),
            states.RESERVATION_ACTIVE: (
                states.RESERVATION_DELETED,
                states.RESERVATION_ERROR,
            ),
            states.RESERVATION_ERROR: (states.RESERVATION_DELETED,),
            states.RESERVATION_DELETED: (),
        }
    ),
    EVENT: _build(
        {
            states.EVENT_UNDONE: (states.EVENT_IN_PROGRESS,),
            # Back to undone when the event is to be tried again.
            states.EVENT_IN_PROGRESS: (
                states.EVENT_UNDONE,
                states.EVENT_DONE,
                states.EVENT_ERROR,
            ),
            states.EVENT_DONE: (),
            states.EVENT_ERROR: (),
        }
    ),
}


def allowed(machine: str, old: str) -> set[str]:
    """Return the statuses that may follow `old`, none if `old` is unknown.

    :param machine: LEASE, RESERVATION or EVENT
    """
    return {new for start, _, new in MACHINES[machine] if start == old}


def check(machine: str, old: str, new: str) -> None:
    """Refuse a change of status that the state machine does not allow.

    :param machine: LEASE, RESERVATION or EVENT
    :raises InvalidStatus: if `new` may not follow `old`
    """
    if new not in allowed(machine, old):
        raise exception.InvalidStatus(
            f'a {machine} that is {old} cannot become {new}', field='status'
        )
