# SPDX-License-Identifier: Apache-2.0
"""The base of the weighers, which always return weights.

One NaN, or an exception, from a weigher fails the request.
"""

from typing import Any
from typing import ClassVar

from nova.scheduler import utils
from nova.scheduler import weights
from oslo_config import cfg
from oslo_log import log as logging

from blazar_sched.ext.host_state import HostState
from blazar_sched.replica import limited_log
from blazar_sched.replica import state
from blazar_sched.worker import process
from blazar_sched.worker.request import read_once
from blazar_sched.worker.request import Request

LOG = logging.getLogger(__name__)
CONF = cfg.CONF

# The horizon of a host that no reservation needs, and of a host that the
# replica does not know: ten years.
FAR = 10 * 365 * 86400

failure = limited_log.LimitedLog(LOG)


class ReplicaWeigher(weights.BaseHostWeigher):
    """A weigher of hosts by the replica; all weights are 0 without a result.

    A subclass defines `weigh`, and the option of its multiplier in `OPTION`.
    The metadata of a host's aggregates may override the option.
    """

    OPTION: ClassVar[str]
    # The option's value when hosts were last weighed: Nova asks for the
    # multiplier of each host, and reading the option for each host would
    # take longer than weighing the hosts.
    _multiplier = 1.0

    def __init__(self) -> None:
        process.prepare()

    def weigh(
        self, replica: state.Replica, request: Request,
        host_states: list[HostState], now: int,
    ) -> list[float] | None:
        """Return a weight for each host; None if the weigher does not apply.

        Higher weights win. `request` is not bound.
        """
        raise NotImplementedError

    def weight_multiplier(self, host_state: HostState) -> float:
        """Return the multiplier: an aggregate's value, else the option."""
        multiplier: float = utils.get_weight_multiplier(
            host_state, self.OPTION, self._multiplier
        )
        return multiplier

    def _weigh_object(self, obj: Any, weight_properties: Any) -> float:
        # Nova requires this method; weigh_objects weighs all hosts at once.
        return 0.0

    def weigh_objects(
        self, weighed_obj_list: list[Any], weight_properties: Any
    ) -> list[float]:
        """Return a weight for each host."""
        host_states = [w.obj for w in weighed_obj_list]
        found = None
        try:
            type(self)._multiplier = getattr(CONF.blazar_sched, self.OPTION)
            replica, stale = process.current()
            if replica is not None and not stale:
                now = process.now()
                request = read_once(
                    weight_properties, replica, now, CONF.blazar_sched
                )
                if not request.bound:
                    found = self.weigh(replica, request, host_states, now)
        except Exception as e:
            failure.report(
                f'{type(self).__name__} failed: {type(e).__name__}: {e}',
                trace=True,
            )
        return [0.0] * len(host_states) if found is None else found


def horizons(
    replica: state.Replica, request: Request, host_states: list[HostState],
    now: int,
) -> list[int]:
    """Return how long each host has room for the request, at most FAR."""
    lasting = [
        min(each, FAR) for each in replica.present.horizon(
            replica.indexes.main, host_states, now, request.amounts,
            request.own_id,
        )
    ]
    if not request.extra:
        return lasting
    of_extra = replica.indexes.extra_horizon(
        [h.uuid for h in host_states], now, request.extra, request.own_id
    )
    return list(map(min, lasting, of_extra))
