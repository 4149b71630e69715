# SPDX-License-Identifier: Apache-2.0
"""LeaseGapWeigher: short lives into short gaps, long ones far from leases.

With a positive ``lease_gap_weight_multiplier``, a bounded instance goes where
the time between its end and the next need for its room is the shortest, so
that long gaps stay whole; any other one goes where the next need is the
farthest. A negative multiplier turns both around. A host may be weighed
otherwise by the metadata of its aggregates.
"""

import array
import itertools
import math
from typing import Any

from nova.scheduler import utils
from nova.scheduler import weights
from oslo_config import cfg
from oslo_log import log as logging

from blazar_sched import ext
from blazar_sched.domain import window
from blazar_sched.replica import request
from blazar_sched.replica import state
from blazar_sched.replica import trouble
from blazar_sched.replica import worker

LOG = logging.getLogger(__name__)
CONF = cfg.CONF

# Where no need is in sight, and where nothing is known: ten years.
FAR = 10 * 365 * 86400

failure = trouble.Trouble(LOG)

# The option's value when hosts were last weighed: Nova asks for it host by
# host, and to look it up there would take longer than to weigh them.
_multiplier = 1.0


class LeaseGapWeigher(weights.BaseHostWeigher):
    """Weigh hosts by the gap before the next lease; higher weights win.

    Weights are logarithms of seconds: an hour more counts next to a gap of
    an hour, not next to one of a month.
    """

    def __init__(self) -> None:
        worker.prepare()

    def weight_multiplier(self, host_state: Any) -> float:
        """Return the option's value, or what an aggregate has for it."""
        return utils.get_weight_multiplier(
            host_state, 'lease_gap_weight_multiplier', _multiplier
        )

    def _weigh_object(self, obj: Any, weight_properties: Any) -> float:
        # Nova wants one; weigh_objects answers for all hosts at once.
        return 0.0

    def weigh_objects(
        self, weighed_obj_list: list[Any], weight_properties: Any
    ) -> list[float]:
        """Return a weight for each host; all 0 if there is nothing to say."""
        global _multiplier
        host_states = [w.obj for w in weighed_obj_list]
        try:
            _multiplier = CONF.blazar_sched.lease_gap_weight_multiplier
            return _weights(host_states, weight_properties)
        except Exception as e:
            failure.report(
                f'LeaseGapWeigher failed: {type(e).__name__}: {e}',
                trace=True,
            )
            return [0.0] * len(host_states)


def _weights(host_states: list[Any], spec: Any) -> list[float]:
    nothing = [0.0] * len(host_states)
    replica, stale = worker.current()
    if replica is None or stale:
        return nothing
    now = worker.now()
    asked = request.read(
        spec, replica.instances, now, CONF.blazar_sched.default_lifetime
    )
    if asked.bound:
        return nothing
    horizons = _horizons(replica, asked, host_states, now)
    if asked.preemptible or asked.end == window.FOREVER:
        return [math.log1p(h) for h in horizons]
    lives = asked.end - now
    return [
        # Too short a gap is the worst, were it let through.
        -math.log1p(h - lives if h >= lives else FAR) for h in horizons
    ]


def _horizons(
    replica: state.Replica,
    asked: request.Request,
    host_states: list[Any],
    now: int,
) -> list[int]:
    """How long each host has room for the request, at most FAR."""
    known = [h.uuid in replica.hosts for h in host_states]
    rows, headroom = replica.index.headroom(
        list(itertools.compress(host_states, known))
    )
    found = iter(replica.index.horizon(
        rows, now, asked.amounts, headroom=headroom, ignore=asked.own_id
    ))
    horizons = [min(next(found), FAR) if each else FAR for each in known]
    for name, amount in asked.extra.items():
        index = replica.extra.get(name)
        if index is not None:
            _shorten(
                horizons, index, amount, asked.own_id, host_states, now
            )
    return horizons


def _shorten(
    horizons: list[int],
    index: ext.TimelineIndex,
    amount: int,
    own_id: str | None,
    host_states: list[Any],
    now: int,
) -> None:
    """Cut horizons to how long there is room for another class's amount."""
    rows = index.rows(h.uuid for h in host_states)
    known = [n for n, row in enumerate(rows) if row >= 0]
    found = index.horizon(
        array.array('i', (rows[n] for n in known)), now, (amount,),
        ignore=own_id,
    )
    for n, horizon in zip(known, found, strict=True):
        horizons[n] = min(horizons[n], horizon)
