# SPDX-License-Identifier: Apache-2.0
"""LifetimeFilter: who may use a reservable host until it is needed."""

from collections import defaultdict
from collections.abc import Iterable
import functools
from typing import Any

from nova.scheduler import filters
from oslo_config import cfg

from blazar_sched.domain import lifetime
from blazar_sched.domain import window
from blazar_sched.filters import decision
from blazar_sched.replica import request
from blazar_sched.replica import state
from blazar_sched.replica import worker

CONF = cfg.CONF

_policy = functools.lru_cache(lifetime.parse_unbounded)


class LifetimeFilter(filters.BaseHostFilter):
    """Pass what is not bound where there is room for as long as it lives.

    Options: ``unbounded``, ``default_lifetime``, ``max_backfill_lifetime``
    and ``min_preemptible_runtime`` of ``[blazar_sched]``.
    """

    RUN_ON_REBUILD = False

    def __init__(self) -> None:
        worker.prepare()

    def filter_all(
        self, filter_obj_list: Iterable[Any], spec_obj: Any
    ) -> list[Any]:
        return decision.decide(
            'LifetimeFilter', _passing, list(filter_obj_list), spec_obj
        )


def _passing(
    replica: state.Replica,
    asked: request.Request,
    host_states: list[Any],
    now: int,
) -> list[Any]:
    options = CONF.blazar_sched
    if asked.bound:
        # It has its room by its reservation: see ReservationFilter.
        return host_states
    if asked.preemptible:
        end = lifetime.end_after(now, options.min_preemptible_runtime)
        return _with_room(replica, asked, host_states, now, end)
    if asked.end == window.FOREVER:
        return _unbounded(replica, asked, host_states, now)
    longest = options.max_backfill_lifetime
    end = asked.end if not longest or asked.end - now <= longest else None
    return _with_room(replica, asked, host_states, now, end)


def _unbounded(
    replica: state.Replica,
    asked: request.Request,
    host_states: list[Any],
    now: int,
) -> list[Any]:
    """Those that pass by their own policy, else by the cloud's."""
    cloud_s = CONF.blazar_sched.unbounded

    def passing(policy: str, group: list[Any]) -> list[Any]:
        end = _policy(policy, 'unbounded').end(now)
        return _with_room(replica, asked, group, now, end)

    if not replica.with_policy:
        return passing(cloud_s, host_states)
    by_policy: dict[str, list[Any]] = {}
    for h in host_states:
        known = replica.hosts.get(h.uuid)
        policy = known and known.unbounded or cloud_s
        by_policy.setdefault(policy, []).append(h)
    chosen = {
        id(h)
        for policy, group in by_policy.items()
        for h in passing(policy, group)
    }
    return [h for h in host_states if id(h) in chosen]


def _with_room(
    replica: state.Replica,
    asked: request.Request,
    host_states: list[Any],
    start: int,
    end: int | None,
) -> list[Any]:
    """Those with room over ``[start, end)``; not reservable if None."""
    if end is None:
        return [h for h in host_states if h.uuid not in replica.hosts]
    passing = replica.index.select(
        host_states, start, end, asked.amounts, ignore=asked.own_id
    )
    if asked.own is not None:
        # Where it is already, Nova's figures hold it: only its growth is new.
        here = [
            h for h in host_states
            if h.uuid == asked.own.host
            and asked.own_id in (h.instances or ())
        ]
        staying = replica.index.select(
            here, start, end, asked.growth, ignore=asked.own_id
        )
        both = {id(h) for h in (*passing, *staying)}
        passing = [h for h in host_states if id(h) in both]
    return _with_extra(replica, asked, passing, start, end)


def _with_extra(
    replica: state.Replica,
    asked: request.Request,
    host_states: list[Any],
    start: int,
    end: int,
) -> list[Any]:
    """Those with room for what it asks of other resource classes.

    A host without inventory of one has it, if at all, in a provider below
    its own, which nobody can reserve.
    """
    for name, amount in asked.extra.items():
        index = replica.extra.get(name)
        if index is None:
            continue
        by_copies: dict[int, list[Any]] = defaultdict(list)
        for h in host_states:
            by_copies[decision.copies(h)].append(h)
        passing = {
            id(h)
            for copies, group in by_copies.items()
            for h in index.select(
                group, start, end, (copies * amount,), ignore=asked.own_id
            )
        }
        host_states = [h for h in host_states if id(h) in passing]
    return host_states
