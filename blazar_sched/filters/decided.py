# SPDX-License-Identifier: Apache-2.0
"""A decision, kept so that it can be explained; see replica.decisions.

Who passed is a fact, and recorded. Why the others did not is looked for when
somebody asks: by the same steps, in the same window, with what HostStates
said then, on the replica of that moment. It may have moved on, so revisions
are told.
"""

from collections.abc import Iterable
import sys
from typing import Any

from blazar_sched.domain import inventory
from blazar_sched.domain import window
from blazar_sched.filters import judgement
from blazar_sched.filters import placed
from blazar_sched.replica import magnet
from blazar_sched.replica import request
from blazar_sched.replica import state

# How a filter came to its answer.
DECIDED = 'decided'
STALE = 'stale'
FAILED = 'failed'

PASSED = 'it passed'
_NOW_IT_WOULD = 'it would pass now: what was in its way is gone'
_NO_REPLICA = 'there is no replica any more to look for the reason in'
_CLOSED = {
    STALE: 'the replica was stale or missing, and on_stale is closed',
    FAILED: 'the filter failed, which is in the log, and on_stale is closed',
}


class Decided:
    """What a filter has answered.

    :param judge: the steps that it went by
    :param asked: the request, None if it could not be read
    :param at: the time that it was decided for, epoch seconds
    :param revision: of the replica, None if there was none
    :param outcome: DECIDED, STALE or FAILED
    :param host_states: what Nova asked about, and `passing` what it got
    """

    def __init__(
        self,
        filter_name: str,
        judge: judgement.Judge,
        asked: request.Request | None,
        at: int,
        revision: int | None,
        outcome: str,
        host_states: list[Any],
        passing: list[Any],
    ) -> None:
        self.filter = filter_name
        self.outcome = outcome
        self.instance_uuid = None if asked is None else asked.instance_uuid
        self.seen = len(host_states)
        self.passed = len(passing)
        self._judge = judge
        self._asked = asked
        self._at = at
        self._revision = revision
        # Nova's objects, until they are settled.
        self._host_states = host_states
        self._passing = passing
        # The names of those that passed, and the others.
        self._names: tuple[str, ...] = ()
        self._refused: list[_Seen] = []

    def settle(self, replica: state.Replica | None) -> None:
        """Keep names of those that passed, and figures of the others."""
        on = {id(h) for h in self._passing}
        refused = [h for h in self._host_states if id(h) not in on]
        self._names = tuple(sys.intern(h.nodename) for h in self._passing)
        own_id = None if self._asked is None else self._asked.own_id
        self._refused = [
            _Seen(h, used, own_id)
            for h, used in zip(refused, _used(replica, refused), strict=True)
        ]
        self._host_states = self._passing = []

    def explain(
        self, replica: state.Replica | None, host: str | None
    ) -> dict[str, Any]:
        refused = [h for h in self._refused if host in (None, h.nodename)]
        reasons = self._reasons(replica, refused)
        hosts = {h.nodename: reasons[id(h)] for h in refused}
        if host in self._names:
            hosts[host] = PASSED
        return {
            'filter': self.filter,
            'at': self._at,
            'outcome': self.outcome,
            'revision': self._revision,
            'explained_by': None if replica is None else replica.revision,
            'asked': self._asked and _asked(self._asked),
            'seen': self.seen,
            'passed': self.passed,
            'hosts': hosts,
        }

    def _reasons(
        self, replica: state.Replica | None, refused: list['_Seen']
    ) -> dict[int, str]:
        """Return a reason for each, by id()."""
        if self.outcome != DECIDED:
            return dict.fromkeys(map(id, refused), _CLOSED[self.outcome])
        if replica is None or self._asked is None:
            return dict.fromkeys(map(id, refused), _NO_REPLICA)
        found = dict.fromkeys(map(id, refused), _NOW_IT_WOULD)
        drawn = {
            id(h)
            for h in magnet.drawn(replica, self._asked, refused, self._at)
        }
        steps = self._judge(replica, self._asked, self._at)
        judged = [h for h in refused if id(h) not in drawn]
        return found | judgement.reasons(steps, judged)


class _Seen:
    """A HostState as it was seen, as far as steps look at it.

    `instances` has what the request had put there, and its own if it was
    there, no other.
    """

    # Nova's HostState has more memory and disk than it has free.
    free_ram_mb = 0
    free_disk_mb = 0

    def __init__(
        self, host_state: Any, used: tuple[int, ...], own_id: str | None
    ) -> None:
        self.uuid = sys.intern(host_state.uuid)
        self.nodename = sys.intern(host_state.nodename)
        self.vcpus_used, self.total_usable_ram_mb, disk_gb = used
        self.disk_mb_used = disk_gb * 1024
        is_here = own_id in (host_state.instances or ())
        own = (own_id,) if is_here else ()
        self.instances = (*own, *placed.consumed(host_state))
        self.num_instances = host_state.num_instances
        first = vars(host_state).get(judgement.FIRST_COUNT)
        if first is not None:
            setattr(self, judgement.FIRST_COUNT, first)


def _used(
    replica: state.Replica | None, host_states: list[Any]
) -> Iterable[tuple[int, ...]]:
    """Yield what is used of each by RESOURCE_CLASSES, as the index reads it.

    Nothing of hosts that the replica does not know.
    """
    none = (0,) * len(inventory.RESOURCE_CLASSES)
    if replica is None:
        yield from (none for _ in host_states)
        return
    _, room = replica.index.headroom(host_states)
    width = len(none)
    for n, h in enumerate(host_states):
        known = replica.hosts.get(h.uuid)
        if known is None:
            yield none
            continue
        yield tuple(
            limit - left
            for limit, left in zip(
                replica.accounting.capacity(known),
                room[n * width:(n + 1) * width],
                strict=True,
            )
        )


def _asked(asked: request.Request) -> dict[str, Any]:
    return {
        'kind': _kind(asked),
        'project_id': asked.project_id,
        'reservation_id': asked.reservation_id,
        'end': None if asked.end == window.FOREVER else asked.end,
        'amounts': {
            name: amount for name, amount in asked.by_class.items() if amount
        },
        'moves_from': None if asked.own is None else asked.own.host,
    }


def _kind(asked: request.Request) -> str:
    if asked.bound:
        return 'bound'
    if asked.preemptible:
        return 'preemptible'
    return 'unbounded' if asked.end == window.FOREVER else 'bounded'
