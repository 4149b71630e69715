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
    :ivar share: the share of the capacity of all hosts that the instances
        that cannot be moved may hold, with the request; None for any share
    """

    end: int
    relocates: bool = False
    share: float | None = None


class Admissions(steps.Step):
    """The admission of a request by each host, from now on.

    A host without a policy of its own has the policy of the cloud. A host that
    is not reservable admits every request.
    """

    def __init__(
        self, replica: state.Replica, request: Request, now: int
    ) -> None:
        self._replica = replica
        self._request = request
        self._now = now
        longest = CONF.blazar_sched.max_backfill_lifetime
        self._is_unbounded = (
            request.end == window.FOREVER and not request.preemptible
        )
        self._is_long = (
            bool(longest) and request.end - now > longest
            and not request.preemptible
        )
        self._by_cloud = self._admission_by_cloud()

    def _admission_by_cloud(self) -> Admission | None:
        options = CONF.blazar_sched
        if self._request.preemptible:
            return Admission(duration.end_after(
                self._now, options.min_preemptible_runtime
            ))
        if self._is_unbounded or (
            self._is_long and options.unbounded == duration.RELOCATE
        ):
            return self._admission_by(options.unbounded)
        return None if self._is_long else Admission(self._request.end)

    def _admission_by(self, policy: str) -> Admission | None:
        unbounded = _policy(policy, 'unbounded')
        if unbounded.relocates and not self._request.movable:
            unbounded = _fixed_policy(
                CONF.blazar_sched.unbounded_fixed, 'unbounded_fixed'
            )
            if self._is_long and not self._is_unbounded and (
                unbounded.share is None
            ):
                return None
        end = unbounded.end(self._now)
        if end is None:
            return None
        return Admission(
            min(end, self._request.end), unbounded.relocates, unbounded.share
        )

    def of(self, host_state: HostState) -> Admission | None:
        """Return the admission by a host; None if the host does not admit."""
        host = self._replica.hosts.get(host_state.uuid)
        if host is None or host.unbounded is None:
            return self._by_cloud
        if self._is_unbounded:
            return self._admission_by(host.unbounded)
        if self._is_long and not host.relocates:
            return None
        return self._by_cloud

    def groups(
        self, host_states: list[HostState]
    ) -> Iterable[tuple[Admission | None, list[HostState]]]:
        """Return the HostStates of each admission, in their order."""
        by_policy = self._is_unbounded or self._is_long
        if not (by_policy and self._replica.with_policy):
            return [(self._by_cloud, host_states)]
        groups: dict[Admission | None, list[HostState]] = defaultdict(list)
        for h in host_states:
            groups[self.of(h)].append(h)
        return groups.items()

    def select(
        self,
        host_states: list[HostState],
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
        if self._is_unbounded:
            return (
                'the host admits no instance without an end: unbounded = '
                'never, or unbounded = relocate, unbounded_fixed = never and '
                'the instance cannot be live-migrated'
            )
        return (
            f'the instance lives for {self._request.end - self._now} s, '
            'longer than max_backfill_lifetime, '
            f'{CONF.blazar_sched.max_backfill_lifetime} s'
        )
