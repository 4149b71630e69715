# SPDX-License-Identifier: Apache-2.0
"""How filters judge: step by step, so that a refusal can be explained.

A filter only says which steps there are. Who passes and why somebody does
not are two walks over the very same steps.
"""

from collections.abc import Callable
from collections.abc import Iterable
from typing import Any
from typing import NamedTuple

from blazar_sched.replica import state
from blazar_sched.worker import request

# What a HostState had of instances when steps first looked at it.
FIRST_COUNT = 'blazar_sched_num_instances'


class Step(NamedTuple):
    """One look at hosts.

    :ivar passing: returns those of the HostStates that pass, in their order
    :ivar reason: says of one that does not, why
    """

    passing: Callable[[list[Any]], list[Any]]
    reason: Callable[[Any], str]


# Returns the steps of a request at a time.
Judge = Callable[[state.Replica, request.Request, int], Iterable[Step]]


def nobody(reason: str) -> Step:
    """Return a step that no host passes."""
    return Step(lambda host_states: [], lambda host_state: reason)


def passing(steps: Iterable[Step], host_states: list[Any]) -> list[Any]:
    """Return the HostStates that pass all steps, in their order."""
    for step in steps:
        if not host_states:
            break
        host_states = step.passing(host_states)
    return host_states


def reasons(
    steps: Iterable[Step], host_states: list[Any]
) -> dict[int, str]:
    """Return what is wrong with those that do not pass, by id()."""
    found: dict[int, str] = {}
    for step in steps:
        passing = step.passing(host_states)
        on = {id(h) for h in passing}
        found.update(
            (id(h), step.reason(h)) for h in host_states if id(h) not in on
        )
        host_states = passing
    return found


def either(
    host_states: list[Any], *groups: list[Any]
) -> list[Any]:
    """Return those that are in any of the groups, in their order.

    :param groups: each in that order already
    """
    groups = tuple(filter(None, groups))
    if len(groups) < 2:
        return groups[0] if groups else []
    chosen = {id(h) for group in groups for h in group}
    return [h for h in host_states if id(h) in chosen]


def copies(host_state: Any) -> int:
    """Return how many of the request's instances a host has with this one.

    Of one multi-create, Nova shows the same host states again and counts what
    it has put there since the first look.
    """
    first: int = vars(host_state).setdefault(
        FIRST_COUNT, host_state.num_instances
    )
    now: int = host_state.num_instances
    return 1 + now - first
