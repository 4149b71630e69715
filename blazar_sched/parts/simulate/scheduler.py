# SPDX-License-Identifier: Apache-2.0
"""nova-scheduler's filters and weighers, by a replica in virtual time."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import dataclasses
from typing import Any
from typing import Protocol

from nova import weights as nova_weights
from nova.scheduler import weights
from nova.scheduler.weights import ram

from blazar_sched.conf import scheduler as scheduler_conf
from blazar_sched.domain.flavor import MOVABLE
from blazar_sched.domain.flavor import PREEMPTIBLE
from blazar_sched.domain.hints import LIFETIME
from blazar_sched.domain.hints import RESERVATION
from blazar_sched.ext import host_state
from blazar_sched.filters import lifetime_filter
from blazar_sched.filters import reservation_filter
from blazar_sched.parts.simulate import freepool
from blazar_sched.parts.simulate import lease
from blazar_sched.parts.simulate.policy import Policy
from blazar_sched.replica import state
from blazar_sched.weighers import base
from blazar_sched.weighers import device
from blazar_sched.weighers import lease_gap
from blazar_sched.weighers import vacate_cost
from blazar_sched.worker import filtering
from blazar_sched.worker import process

# The options of features that are unused here: decisions are not kept, and a
# placed instance is in the replica at once.
_UNUSED = {'decisions_kept': 0, 'pending_ttl': 0}


class Failure(Exception):
    """Raised if a filter or weigher failed, so that its results are void."""


@dataclasses.dataclass
class Spec:
    """A request with what the filters and weighers read of a RequestSpec.

    Nova's RequestSpec checks each field whenever it is set or read, which
    takes longer than a filter.

    :param extra_specs: of the flavor
    :param scheduler_hints: each a list, as Nova keeps them
    """

    instance_uuid: str
    vcpus: int
    memory_mb: int
    extra_specs: dict[str, str]
    scheduler_hints: dict[str, list[str]]
    project_id: str = lease.PROJECT
    root_gb: int = 0
    ephemeral_gb: int = 0
    swap: int = 0

    @property
    def flavor(self) -> 'Spec':
        return self

    def __contains__(self, name: str) -> bool:
        """Tell whether a field of Nova's is set."""
        return name in self.__dataclass_fields__

    def get_scheduler_hint(self, name: str) -> str | None:
        found = self.scheduler_hints.get(name)
        return None if found is None else found[0]


class HostState(host_state.HostState, Protocol):
    """What a simulated cloud reads and writes of Nova's HostState."""

    host: str
    vcpus_total: int
    instances: dict[str, None]


class WeighedHost(Protocol):
    """A host with its weight, as Nova's weighers are given it."""

    obj: HostState


class Filter(Protocol):
    """A filter, with what Nova's handler calls for many hosts at once."""

    def filter_all(
        self, filter_obj_list: Sequence[HostState], spec_obj: Spec
    ) -> Iterable[HostState]: ...


class Weigher(Protocol):
    """A weigher, with what Nova's handler reads and calls."""

    minval: float | None
    maxval: float | None

    def weight_multiplier(self, host_state: HostState) -> float: ...

    def weigh_objects(
        self, weighed_obj_list: list[WeighedHost], weight_properties: Spec
    ) -> list[float]: ...


class _RamWeigher(ram.RAMWeigher):
    """Nova's weigher, with a multiplier that is read only once.

    All weights are read at once, which takes a third of the time.
    """

    def __init__(self, stacking: bool) -> None:
        super().__init__()
        # As the README sets the option, or as Nova does.
        self._multiplier = (
            -1.0 if stacking
            else process.CONF.filter_scheduler.ram_weight_multiplier
        )

    def weight_multiplier(self, host_state: HostState) -> float:
        multiplier: float = self._multiplier
        return multiplier

    def weigh_objects(
        self, weighed_obj_list: list[WeighedHost], weight_properties: Spec
    ) -> list[float]:
        return [each.obj.free_ram_mb for each in weighed_obj_list]


class Scheduler:
    """A scheduler with the filters and weighers that a policy switches on.

    :param held: the reservations that hold something of a host, by the
        uuids of the hosts that are kept for leases
    """

    def __init__(self, policy: Policy, held: freepool.Held) -> None:
        # The filter of bound requests, and the filter of all other requests.
        # LifetimeFilter passes every bound request, and ReservationFilter
        # every other request, because no host is dedicated.
        self._bound_filter: Filter = reservation_filter.ReservationFilter()
        self._other_filter: Filter | None = None
        if policy.closed:
            self._bound_filter = freepool.FreepoolFilter(held)
            self._other_filter = self._bound_filter
        elif policy.timeline:
            self._other_filter = lifetime_filter.LifetimeFilter()
        weighers: list[Weigher] = [_RamWeigher(policy.stacking)]
        if policy.weighers:
            weighers.append(lease_gap.LeaseGapWeigher())
            weighers.append(vacate_cost.VacateCostWeigher())
            weighers.append(device.DeviceWeigher())
        self._weighers = weighers

    def choose(
        self, host_states: Sequence[HostState], spec: Spec
    ) -> HostState | None:
        """Return the best HostState that passes, None if none passes.

        The choice is that of Nova's handlers of filters and weighers, which
        also compose log messages and ask for the multiplier of each host. Here
        no host is in an aggregate, so that all hosts have one multiplier.
        """
        chosen = self._other_filter
        if spec.get_scheduler_hint(RESERVATION) is not None:
            chosen = self._bound_filter
        passing = host_states
        if chosen is not None:
            passing = list(chosen.filter_all(host_states, spec))
        if len(passing) < 2:
            return passing[0] if passing else None
        weighed = [weights.WeighedHost(h, 0.0) for h in passing]
        totals = [0.0] * len(passing)
        for weigher in self._weighers:
            found = nova_weights.normalize(
                weigher.weigh_objects(weighed, spec), weigher.minval,
                weigher.maxval,
            )
            multiplier = weigher.weight_multiplier(passing[0])
            totals = [
                total + multiplier * weight
                for total, weight in zip(totals, found, strict=True)
            ]
        return passing[totals.index(max(totals))]


def spec(
    uuid: str, vcpus: int, memory_mb: int, lifetime: int | None = None,
    preemptible: bool = False, reservation_id: str | None = None,
    gpus: int = 0, movable: str | None = None,
) -> Spec:
    """Return a request for a host.

    :param lifetime: in seconds, None for an unbounded instance
    :param movable: how the instance is moved; None if the flavor does not say
    """
    hints: dict[str, list[str]] = {}
    if lifetime is not None:
        hints[LIFETIME] = [f'{lifetime}s']
    if reservation_id is not None:
        hints[RESERVATION] = [reservation_id]
    extra_specs = {PREEMPTIBLE: 'true'} if preemptible else {}
    if gpus:
        extra_specs[f'resources:{lease.GPU}'] = str(gpus)
    if movable is not None:
        extra_specs[MOVABLE] = movable or 'false'
    return Spec(uuid, vcpus, memory_mb, extra_specs, hints)


@contextlib.contextmanager
def following(
    replica: state.Replica, now: Callable[[], int], **options: Any
) -> Iterator[None]:
    """Make the filters of this process decide by `replica`, at `now`.

    :param options: the options of ``[blazar_sched]``; others are ignored
    :raises Failure: if a filter or weigher failed meanwhile
    """
    failures = filtering.failure, filtering.stale_replica, base.failure
    before = [each.count for each in failures]
    options = _UNUSED | {
        name: value for name, value in options.items()
        if name in process.CONF[scheduler_conf.GROUP]
    }
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
