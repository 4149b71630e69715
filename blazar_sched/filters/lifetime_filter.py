# SPDX-License-Identifier: Apache-2.0
"""LifetimeFilter: admits requests to reservable hosts until a need arises."""

from collections.abc import Iterable
from collections.abc import Iterator
import functools

from nova.scheduler import filters

from blazar_sched.ext.host_state import HostState
from blazar_sched.replica import state
from blazar_sched.worker import filtering
from blazar_sched.worker import process
from blazar_sched.worker import room
from blazar_sched.worker import steps
from blazar_sched.worker.nova_objects import RequestSpec
from blazar_sched.worker.request import Request


class LifetimeFilter(filters.BaseHostFilter):
    """Pass an unbound request on hosts with room for the instance's lifetime.

    Options: ``unbounded...``, ``default_lifetime``,
    ``min_preemptible_runtime`` and ``relocation_...`` of ``[blazar_sched]``.
    """

    RUN_ON_REBUILD = False

    def __init__(self) -> None:
        process.prepare()

    def filter_all(
        self, filter_obj_list: Iterable[HostState], spec_obj: RequestSpec
    ) -> list[HostState]:
        return filtering.filter_hosts(
            'LifetimeFilter', _steps, list(filter_obj_list), spec_obj,
            functools.partial(_steps, leaving=True),
        )


def _steps(
    replica: state.Replica, request: Request, now: int, leaving: bool = False
) -> Iterator[steps.Step]:
    if request.bound:
        return  # The reservation has the room: see ReservationFilter.
    hosts = room.Room(replica, request, now, leaving)
    yield hosts.admissions
    yield room.FixedShare(hosts)
    # Paths are looked for until enough hosts pass, so other checks go first.
    yield room.RoomNow(hosts)
    yield room.HostRoom(hosts)
    for name in request.extra:
        # A host without inventory of a class has the class, if at all, from
        # a sharing provider, which cannot be reserved.
        index = replica.indexes.extra.get(name)
        if index is not None:
            yield room.ClassRoom(hosts, name, index)
