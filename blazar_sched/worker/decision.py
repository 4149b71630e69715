# SPDX-License-Identifier: Apache-2.0
"""Decisions of filters, kept in a form that can be explained.

See worker.decision_log. The hosts that passed are a fact, and are recorded.
The reasons for which the other hosts did not pass are computed on request: by
the same steps, for the same window, with the figures that the host states had
at the time of the decision, on the replica at the time of the question. The
relocation paths by which hosts passed are computed on the same replica. The
replica may have changed since the decision, so the explanation includes both
revisions.
"""

from collections.abc import Collection
import operator
import struct
from typing import NamedTuple
from typing import TypedDict

from blazar_sched.domain import inventory
from blazar_sched.domain import window
from blazar_sched.domain.instance import Instance
from blazar_sched.ext.host_state import HostState
from blazar_sched.replica import state
from blazar_sched.worker import magnetic
from blazar_sched.worker import nova_objects
from blazar_sched.worker import steps as filter_steps
from blazar_sched.worker.paths import ENOUGH
from blazar_sched.worker.reasons import not_looked_for
from blazar_sched.worker.recorded_hosts import Cell
from blazar_sched.worker.recorded_hosts import cell
from blazar_sched.worker.recorded_hosts import Chunk
from blazar_sched.worker.recorded_hosts import EMPTY
from blazar_sched.worker.recorded_hosts import RecordedHosts
from blazar_sched.worker.request import Request
from blazar_sched.worker.steps import StepFactory

# How a filter came to its decision.
DECIDED = 'decided'
STALE = 'stale'
UNKNOWN = 'unknown'
# By the replica, but a check failed on some hosts, which were refused.
INCOMPLETE = 'incomplete'
FAILED = 'failed'

_BY_REPLICA = DECIDED, INCOMPLETE

# The answer of a filter about a host; 0 if the filter was not asked.
_HAS_PASSED, _WAS_REFUSED = 1, 2
_CELL = struct.Struct(f'{len(inventory.RESOURCE_CLASSES)}q')

PASSED = 'the host passed'
_NOW_IT_WOULD = 'the host would pass now: the reason is gone'
_NO_REPLICA = 'there is no replica to find the reason in'
_CLOSED = {
    STALE: 'the replica was stale or missing, and on_stale is closed',
    UNKNOWN: (
        'there was no copy of the ledger and no list of reservable hosts, and '
        'on_stale and on_unknown_hosts are closed, or the request names a '
        'reservation'
    ),
    FAILED: 'the filter failed, which is in the log',
}


class Asked(TypedDict):
    """The request of a decision, in JSON primitives."""

    kind: str
    project_id: str | None
    reservation_id: str | None
    end: int | None
    amounts: dict[str, int]
    moves_from: str | None


class Explanation(TypedDict):
    """A decision with its reasons, in JSON primitives.

    `hosts` has a reason for each host that did not pass, by its name.
    """

    filter: str
    at: int
    outcome: str
    revision: int | None
    explained_by: int | None
    asked: Asked | None
    seen: int
    passed: int
    hosts: dict[str, str]


class Decision:
    """The decision of one filter about one request.

    :param step_factory: returns the steps that the filter used
    :param request: the request, None if the request could not be read
    :param at: the time for which the decision was made, epoch seconds
    :param revision: of the replica, None if there was no replica
    :param outcome: DECIDED, INCOMPLETE, STALE, UNKNOWN or FAILED
    :param host_states: the host states that Nova passed to the filter, and
        `passing` those that the filter returned
    :ivar fixed: as of the request
    :ivar seen: how many host states Nova passed to the filter
    :ivar passed: how many host states the filter returned
    """

    def __init__(
        self, filter_name: str, step_factory: StepFactory,
        request: Request | None, at: int, revision: int | None, outcome: str,
        host_states: list[HostState], passing: list[HostState],
    ) -> None:
        self.filter = filter_name
        self.outcome = outcome
        self.instance_uuid = None if request is None else request.instance_uuid
        self.fixed = request is not None and request.fixed
        self.seen = len(host_states)
        self.passed = len(passing)
        self._step_factory = step_factory
        self._request = request
        self._at = at
        self._revision = revision
        # Objects of Nova, kept until the decision is settled.
        self._host_states = host_states
        self._passing = passing
        # The answers, and the room that hosts had left, by host number.
        self._identities: list[tuple[str | None, str]] = []
        self._answers = b''
        self._left: tuple[Chunk, ...] = ()
        self._noted: dict[int, _HostFacts] = {}

    def settle(
        self, replica: state.Replica | None, hosts: RecordedHosts
    ) -> None:
        """Keep which hosts passed, and the room left on the others.

        :param hosts: the record of hosts that decisions share
        """
        passing = {id(h) for h in self._passing}
        numbers = hosts.numbers(self._host_states)
        answers = bytearray(len(hosts.identities))
        refused, refused_numbers = [], []
        for number, h in zip(numbers, self._host_states, strict=True):
            if id(h) in passing:
                answers[number] = _HAS_PASSED
            else:
                answers[number] = _WAS_REFUSED
                refused.append(h)
                refused_numbers.append(number)
        self._answers = bytes(answers)
        self._identities = hosts.identities
        self._host_states = self._passing = []
        if (
            self.outcome not in _BY_REPLICA or self._request is None
            or replica is None
        ):
            return
        if not self._request.bound:
            # The room of a bound request is that of its reservation,
            # regardless of what else is used on the host.
            self._left = hosts.keep(
                refused_numbers, _room_left(replica, refused)
            )
        for number, h in zip(refused_numbers, refused, strict=True):
            noted = _facts(h, replica, self._request)
            if noted != _NO_FACTS:
                self._noted[number] = noted

    def explain(
        self, replica: state.Replica | None, host: str | None
    ) -> Explanation:
        """Return the decision with its reasons.

        :param replica: the replica from which reasons are computed
        :param host: the only host to explain, by its name; None for all hosts
        """
        refused = self._recorded(replica, _WAS_REFUSED, host)
        reasons = self._reasons(replica, refused)
        hosts = {h.nodename: reasons[id(h)] for h in refused}
        if host is not None and self._numbers(_HAS_PASSED, host):
            hosts[host] = PASSED
        if self._request is not None and self._request.movable:
            passing = self._recorded(replica, _HAS_PASSED, host)
            paths = self._paths(replica, passing)
            hosts |= {
                h.nodename: f'{PASSED}, by a relocation path: {paths[id(h)]}'
                for h in passing if id(h) in paths
            }
        return {
            'filter': self.filter,
            'at': self._at,
            'outcome': self.outcome,
            'revision': self._revision,
            'explained_by': None if replica is None else replica.revision,
            'asked': (
                None if self._request is None
                else _request_fields(self._request)
            ),
            'seen': self.seen,
            'passed': self.passed,
            'hosts': hosts,
        }

    def _numbers(self, answer: int, host: str | None) -> list[int]:
        """Return the numbers of the hosts with an answer, or of one host."""
        return [
            number for number, own in enumerate(self._answers)
            if own == answer and host in (None, self._identities[number][1])
        ]

    def _recorded(
        self, replica: state.Replica | None, answer: int, host: str | None
    ) -> list[HostState]:
        """Return the hosts with an answer, or one host, as recorded."""
        return [
            self._recorded_host(replica, number)
            for number in self._numbers(answer, host)
        ]

    def _recorded_host(
        self, replica: state.Replica | None, number: int
    ) -> HostState:
        uuid, nodename = self._identities[number]
        used = (0,) * len(inventory.RESOURCE_CLASSES)
        given_back: tuple[str, ...] = ()
        if replica is not None and uuid is not None and self._left:
            used = _used(replica, uuid, cell(self._left, number))
            given_back = replica.present.given_back(uuid)
        noted = self._noted.get(number, _NO_FACTS)
        return _RecordedHostState(
            uuid or '', nodename, used, noted.added,
            {*given_back, *noted.here, *(each.uuid for each in noted.added)}
            .difference(noted.away),
        )

    def _reasons(
        self, replica: state.Replica | None, refused: list[HostState]
    ) -> dict[int, str]:
        """Return a reason for each refused host, by id()."""
        if self.outcome not in _BY_REPLICA:
            return dict.fromkeys(map(id, refused), _CLOSED[self.outcome])
        if replica is None or self._request is None:
            return dict.fromkeys(map(id, refused), _NO_REPLICA)
        found = dict.fromkeys(map(id, refused), _NOW_IT_WOULD)
        if self.passed >= ENOUGH:
            found |= {
                key: not_looked_for(path)
                for key, path in self._paths(replica, refused).items()
            }
        magnetic_hosts = {
            id(h)
            for h in magnetic.hosts_of_project(
                replica, self._request, refused, self._at
            )
        }
        steps = self._step_factory(replica, self._request, self._at)
        others = [h for h in refused if id(h) not in magnetic_hosts]
        return found | filter_steps.reasons(steps, others)

    def _paths(
        self, replica: state.Replica | None, host_states: list[HostState]
    ) -> dict[int, str]:
        """Return the paths by which hosts can pass, in words, by id()."""
        if (
            self.outcome not in _BY_REPLICA or replica is None
            or self._request is None
        ):
            return {}
        steps = self._step_factory(replica, self._request, self._at)
        return filter_steps.paths(steps, host_states)


class _HostFacts(NamedTuple):
    """The facts noted of a host besides the room that the host had left.

    :ivar added: the instances of the request that had been put on the host
    :ivar here: the uuid of the instance that moves, if it is on the host
    :ivar away: the uuids of the instances whose room the index gives back, but
        which were not on the host any more
    """

    added: tuple[Instance, ...]
    here: tuple[str, ...]
    away: tuple[str, ...]


# The value for nearly all hosts.
_NO_FACTS = _HostFacts((), (), ())


class _RecordedHostState:
    """A HostState as it was at the decision, with what the steps read.

    :param used: the used amounts of the host, by RESOURCE_CLASSES
    :param added: the instances of the request that had been put on the host
    :param instances: the uuids of the instances on the host, as far as they
        affect the decision
    """

    # Nova's HostState has more memory and disk than its free amounts. Here
    # the free amounts are 0, so that the total is the used amount.
    free_ram_mb = 0
    free_disk_mb = 0

    def __init__(
        self, uuid: str, nodename: str, used: tuple[int, ...],
        added: tuple[Instance, ...], instances: set[str],
    ) -> None:
        self.uuid = uuid
        self.nodename = nodename
        self.vcpus_used, self.total_usable_ram_mb, disk_gb = used
        self.disk_mb_used = disk_gb * 1024
        self.instances: Collection[str] | None = instances
        for each in added:
            nova_objects.add_consumed(self, each)


def _facts(
    host_state: HostState, replica: state.Replica, request: Request
) -> _HostFacts:
    named = host_state.instances or ()
    own_id = request.own_id
    own = (own_id,) if own_id is not None and own_id in named else ()
    return _HostFacts(
        tuple(nova_objects.consumed(host_state).values()), own,
        () if request.bound else tuple(
            uuid for uuid in replica.present.given_back(host_state.uuid)
            if uuid not in named
        ),
    )


def _room_left(
    replica: state.Replica, host_states: list[HostState]
) -> list[Cell]:
    """Return the room that each host has left by RESOURCE_CLASSES.

    The room is computed as in the filters. For a host that the replica does
    not know, the room is unknown.
    """
    found = replica.present.headroom(replica.indexes.main, host_states, None)
    packed, size = found.room.tobytes(), _CELL.size
    return [
        packed[n * size:(n + 1) * size] if row >= 0 else EMPTY
        for n, row in enumerate(found.rows)
    ]


def _used(replica: state.Replica, uuid: str, left: Cell) -> tuple[int, ...]:
    """Return the used amounts of a host by RESOURCE_CLASSES; 0 if unknown."""
    known = replica.hosts.get(uuid)
    if known is None or left == EMPTY:
        return (0,) * len(inventory.RESOURCE_CLASSES)
    return tuple(
        map(
            operator.sub, replica.accounting.capacity(known),
            _CELL.unpack(left),
        )
    )


def _request_fields(request: Request) -> Asked:
    return {
        'kind': _kind(request),
        'project_id': request.project_id,
        'reservation_id': request.reservation_id,
        'end': None if request.end == window.FOREVER else request.end,
        'amounts': {
            name: amount for name, amount in request.by_class.items() if amount
        },
        'moves_from': None if request.own is None else request.own.host,
    }


def _kind(request: Request) -> str:
    if request.bound:
        return 'bound'
    if request.preemptible:
        return 'preemptible'
    return 'unbounded' if request.end == window.FOREVER else 'bounded'
