# SPDX-License-Identifier: Apache-2.0
"""nova-scheduler's filters and weighers, by a replica in virtual time."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import functools
from typing import Any

from nova import objects
from nova.objects import flavor
from nova.objects import request_spec
from nova.scheduler import filters
from nova.scheduler import weights
from nova.scheduler.weights import ram

from blazar_sched.conf import scheduler as scheduler_conf
from blazar_sched.domain.flavor import PREEMPTIBLE
from blazar_sched.domain.hints import LIFETIME
from blazar_sched.domain.hints import RESERVATION
from blazar_sched.filters import lifetime_filter
from blazar_sched.filters import reservation_filter
from blazar_sched.replica import state
from blazar_sched.simulate import freepool
from blazar_sched.simulate import lease
from blazar_sched.simulate.policy import Policy
from blazar_sched.weighers import base
from blazar_sched.weighers import lease_gap
from blazar_sched.weighers import vacate_cost
from blazar_sched.worker import filtering
from blazar_sched.worker import process

objects.register_all()


class Failure(Exception):
    """Raised if a filter or weigher failed, so that its results are void."""


class _RamWeigher(ram.RAMWeigher):
    """Nova's weigher, with a multiplier that is read once, not per host."""

    def __init__(self) -> None:
        super().__init__()
        self._multiplier = process.CONF.filter_scheduler.ram_weight_multiplier

    def weight_multiplier(self, host_state: Any) -> float:
        multiplier: float = self._multiplier
        return multiplier


class Scheduler:
    """A scheduler with the filters and weighers that a policy switches on.

    :param held: the reservations that hold something of a host, by the
        uuids of the hosts that are kept for leases
    """

    def __init__(
        self, policy: Policy, held: freepool.Held
    ) -> None:
        chain: list[Any] = [
            freepool.FreepoolFilter(held) if policy.closed
            else reservation_filter.ReservationFilter()
        ]
        if policy.timeline:
            chain.append(lifetime_filter.LifetimeFilter())
        weighers: list[Any] = [_RamWeigher()]
        if policy.weighers:
            weighers.append(lease_gap.LeaseGapWeigher())
            weighers.append(vacate_cost.VacateCostWeigher())
        self._filtered = functools.partial(
            filters.HostFilterHandler().get_filtered_objects, chain
        )
        self._weighed = functools.partial(
            weights.HostWeightHandler().get_weighed_objects, weighers
        )

    def choose(self, host_states: Sequence[Any], spec: Any) -> Any:
        """Return the best HostState that passes, None if none passes."""
        passing = self._filtered(host_states, spec)
        if not passing:
            return None
        return self._weighed(passing, spec)[0].obj


def spec(
    uuid: str, vcpus: int, memory_mb: int, lifetime: int | None = None,
    preemptible: bool = False, reservation_id: str | None = None,
) -> Any:
    """Return a RequestSpec as Nova passes it to its filters.

    :param lifetime: in seconds, None for an unbounded instance
    """
    hints: dict[str, list[str]] = {}
    if lifetime is not None:
        hints[LIFETIME] = [f'{lifetime}s']
    if reservation_id is not None:
        hints[RESERVATION] = [reservation_id]
    return request_spec.RequestSpec(
        instance_uuid=uuid, project_id=lease.PROJECT,
        flavor=_flavor(vcpus, memory_mb, preemptible), is_bfv=False,
        scheduler_hints=hints,
    )


@functools.lru_cache
def _flavor(vcpus: int, memory_mb: int, preemptible: bool) -> Any:
    extra_specs = {PREEMPTIBLE: 'true'} if preemptible else {}
    return flavor.Flavor(
        vcpus=vcpus, memory_mb=memory_mb, root_gb=0, ephemeral_gb=0, swap=0,
        extra_specs=extra_specs,
    )


@contextlib.contextmanager
def following(
    replica: state.Replica, now: Callable[[], int], **options: Any
) -> Iterator[None]:
    """Make the filters of this process decide by `replica`, at `now`.

    :param options: the options of ``[blazar_sched]``
    :raises Failure: if a filter or weigher failed meanwhile
    """
    failures = filtering.failure, filtering.stale_replica, base.failure
    before = [each.count for each in failures]
    for name, value in options.items():
        process.CONF.set_override(name, value, scheduler_conf.GROUP)
    try:
        with process.following(replica, now):
            yield
    finally:
        for name in options:
            process.CONF.clear_override(name, scheduler_conf.GROUP)
    if before != [each.count for each in failures]:
        raise Failure('a filter or weigher failed: see the log')
