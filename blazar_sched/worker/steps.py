# SPDX-License-Identifier: Apache-2.0
"""Steps by which filters check hosts, so that a refusal can be explained.

A filter only defines its steps. The hosts that pass and the reasons why other
hosts do not are found by two passes over the same steps.

A step that fails refuses the hosts on which it fails, and no others: see
`checked`.
"""

import abc
from collections.abc import Callable
from collections.abc import Iterable

from blazar_sched.ext.host_state import HostState
from blazar_sched.replica import state
from blazar_sched.worker.request import Request

# The most parts of the hosts that are checked by themselves after a step has
# failed, so that such a decision ends soon.
MAX_PARTS = 1000
FAILED = 'the check of the host failed, which is in the log'


class Step(abc.ABC):
    """One check of hosts."""

    @abc.abstractmethod
    def passing(self, host_states: list[HostState]) -> list[HostState]:
        """Return the HostStates that pass, in their order."""

    @abc.abstractmethod
    def reason(self, host_state: HostState) -> str:
        """Return the reason why a HostState does not pass."""

    def paths(self, host_states: list[HostState]) -> dict[int, str]:
        """Return the relocation paths by which HostStates pass.

        :returns: each path in words, by id() of HostState
        """
        return {}


# Returns the steps for a request at a given time.
StepFactory = Callable[[state.Replica, Request, int], Iterable[Step]]


def passing(
    steps: Iterable[Step], host_states: list[HostState],
    failed: Callable[[list[HostState]], list[HostState]],
) -> list[HostState]:
    """Return the HostStates that pass all steps, in their order.

    :param failed: is called, while the exception is handled, with hosts on
        which a step fails; returns those that pass the step all the same
    """
    for step in steps:
        if not host_states:
            break
        host_states = checked(step, host_states, failed)
    return host_states


def checked(
    step: Step, host_states: list[HostState],
    failed: Callable[[list[HostState]], list[HostState]],
) -> list[HostState]:
    """Return the HostStates that pass a step, see `passing`.

    Where the step fails, each half of the hosts is checked by itself, down to
    single hosts, or to MAX_PARTS parts.
    """
    found: list[list[HostState]] = []
    parts = [host_states]
    # Each part adds its halves at the end, so that large parts come first.
    for part in parts:
        try:
            found.append(step.passing(part))
        except Exception:
            half = len(part) // 2
            if half and len(parts) < MAX_PARTS:
                parts += part[:half], part[half:]
            else:
                found.append(failed(part))
    return either(host_states, *found)


def reasons(
    steps: Iterable[Step], host_states: list[HostState]
) -> dict[int, str]:
    """Return the reasons why HostStates do not pass, by id()."""
    found: dict[int, str] = {}

    def failed(part: list[HostState]) -> list[HostState]:
        found.update((id(h), FAILED) for h in part)
        return []

    for step in steps:
        passing = checked(step, host_states, failed)
        on = {id(h) for h in passing} | found.keys()
        found.update(
            (id(h), step.reason(h)) for h in host_states if id(h) not in on
        )
        host_states = passing
    return found


def paths(
    steps: Iterable[Step], host_states: list[HostState]
) -> dict[int, str]:
    """Return the paths by which HostStates pass; see `Step.paths`."""
    found: dict[int, str] = {}
    for step in steps:
        found |= step.paths(host_states)
    return found


def either(
    host_states: list[HostState], *groups: list[HostState]
) -> list[HostState]:
    """Return the HostStates that are in any of the groups, in their order.

    :param groups: the groups, each in the order of `host_states` already
    """
    groups = tuple(filter(None, groups))
    if len(groups) < 2:
        return groups[0] if groups else []
    chosen = {id(h) for group in groups for h in group}
    return [h for h in host_states if id(h) in chosen]
