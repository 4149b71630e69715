# SPDX-License-Identifier: Apache-2.0
"""Admission: which host takes a request, and until when it needs room."""

from collections import defaultdict
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
import functools
from typing import NamedTuple

from oslo_config import cfg

from blazar_sched.domain import duration
from blazar_sched.domain import window
from blazar_sched.ext.host_state import HostState
from blazar_sched.replica import state
from blazar_sched.worker import steps
from blazar_sched.worker.request import Request

CONF = cfg.CONF

_policy = functools.lru_cache(duration.parse_unbounded)
_fixed_policy = functools.lru_cache(duration.parse_fixed)


class Admission(NamedTuple):
    """How a host admits a request.

    :ivar end: the time until which the request needs room
    :ivar relocates: whether the room may be on other hosts later
    :ivar enough: the time until which room on the host itself is enough
    :ivar share: the share of the capacity of all hosts that the instances
        that cannot be moved may hold, with the request; None for any share
    """

    end: int
    relocates: bool
    enough: int
    share: float | None


class Admissions(steps.Step):
    """The admission of a request by each host, from now on.

    A host without a policy of its own has the policy of the cloud. A host that
    is not reservable admits every request.

    Who says more never gets less: where an instance without an end is
    admitted, so is the same instance with an end, and where one with an end
    is, so is the same one with an earlier end, or a preemptible one; where one
    that cannot be moved is admitted, so is one that can.
    """

    def __init__(
        self, replica: state.Replica, request: Request, now: int
    ) -> None:
        self._replica = replica
        self._request = request
        self._now = now
        self._by_policy = functools.cache(self._admission_by)

    def _admission_by(self, policy: str) -> Admission | None:
        """Return the admission by a policy for instances without an end."""
        request, settings = self._request, self._replica.settings
        rule = _policy(policy, 'unbounded')
        fixed = _fixed_policy(
            settings.unbounded_fixed, 'unbounded_fixed'
        ) if rule.relocates else rule
        enough = fixed.end(self._now)
        if enough is None:
            if not (
                request.movable and rule.relocates or request.preemptible
                or request.end < window.FOREVER
            ):
                return None
            enough = window.FOREVER
        enough = min(enough, request.end)
        if request.preemptible:
            enough = min(enough, self._preemptible_end(rule.relocates))
        elif rule.relocates and request.movable:
            return Admission(request.end, True, enough, None)
        return Admission(
            enough, False, enough, None if request.preemptible else fixed.share
        )

    def _preemptible_end(self, relocates: bool) -> int:
        """Return until when a preemptible request has to be able to run.

        It need not run for longer than another instance runs, at least, before
        the instance or a lease leaves the host.
        """
        seconds: int = CONF.blazar_sched.min_preemptible_runtime
        if relocates or self._replica.leavable:
            seconds = min(seconds, self._replica.settings.rules.lead)
        return duration.end_after(self._now, seconds)

    def of(self, host_state: HostState) -> Admission | None:
        """Return the admission by a host; None if the host does not admit."""
        host = self._replica.hosts.get(host_state.uuid)
        own = None if host is None else host.unbounded
        return self._by_policy(own or self._replica.settings.unbounded)

    def groups(
        self, host_states: list[HostState]
    ) -> Iterable[tuple[Admission | None, list[HostState]]]:
        """Return the HostStates of each admission, in their order."""
        if not self._replica.with_policy:
            policy = self._replica.settings.unbounded
            return [(self._by_policy(policy), host_states)]
        groups: dict[Admission | None, list[HostState]] = defaultdict(list)
        for h in host_states:
            groups[self.of(h)].append(h)
        return groups.items()

    def select(
        self, host_states: list[HostState],
        look: Callable[[list[HostState], Admission], list[HostState]],
    ) -> list[HostState]:
        """Return the HostStates that have what the request needs.

        A booked host has it, and so has a host that is not reservable.

        :param look: returns those that have it of the HostStates that give
            an admission
        """
        booked = self._booked
        return steps.either(
            host_states,
            [h for h in host_states if h.uuid in booked] if booked else [],
            *(
                self._not_reservable(group) if admission is None
                else look(group, admission)
                for admission, group in self.groups(host_states)
            ),
        )

    def _not_reservable(self, host_states: list[HostState]) -> list[HostState]:
        return [h for h in host_states if h.uuid not in self._replica.hosts]

    @functools.cached_property
    def _booked(self) -> Collection[str]:
        """The hosts on which the next stay of the instance has begun.

        The manager has booked the room, as its rules allow, and Placement
        tells whether the room is there. The figures of the host may count
        other instances twice: HostState counts instances that are on their
        way to the host, and so do their relocation allocations. Nothing is
        booked for an instance that grows, or that could not go further along
        its path.
        """
        own = self._request.own
        if own is None or not self._request.is_counted or (
            own.relocations[1:] and not self._request.movable
        ):
            return ()
        hosts = self._replica.hosts
        return {
            stay.host for stay in own.relocations[:1]
            if stay.start <= self._now < stay.end
            and stay.host in hosts
            and not hosts[stay.host].is_closed(self._now)
        }

    def passing(self, host_states: list[HostState]) -> list[HostState]:
        """Return the HostStates that admit the request."""
        return self.select(host_states, lambda group, admission: group)

    def reason(self, host_state: HostState) -> str:
        return (
            'the host admits no instance without an end: unbounded = never, '
            'or unbounded = relocate, unbounded_fixed = never and the '
            'instance cannot be live-migrated'
        )
