# SPDX-License-Identifier: Apache-2.0
"""The loop that finds the hosts which leases that have not started can leave.

nova-scheduler may put an instance on such a host, although a lease will need
the host. The host then holds too much, and replanning moves the lease. Several
managers may do the same: only differences are written. The search is outside
of the commit, and so what the search finds counts for the revision that was
searched. See placing.leavable.
"""

from collections.abc import Callable
from collections.abc import Sequence
import functools

from oslo_config import cfg

from blazar_sched.domain.lease import Lease
from blazar_sched.placing import lease_placing
from blazar_sched.placing import leavable
from blazar_sched.placing import overload
from blazar_sched.placing.leavable import Leavable
from blazar_sched.replica import state
from blazar_sched.service import loop
from blazar_sched.service.booking import placing_options
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.tx import PlacingTx
from blazar_sched.service.upkeep import replanning

# Seconds between two looks at the ledger, and between two searches while the
# ledger stays the same, or a host holds too much.
PACE, RECHECK = 5.0, 60


class LeavableHosts(loop.Looped):
    """The hosts that leases which have not started can leave.

    :param wake_replanner: has leases moved off the hosts that hold too much
    :param clock: returns the time in epoch seconds
    """

    def __init__(
        self, conf: cfg.ConfigOpts, ledger: Ledger,
        wake_replanner: Callable[[], object], clock: Callable[[], float],
    ) -> None:
        self._conf = conf
        self._ledger = ledger
        self._wake_replanner = wake_replanner
        self._clock = clock
        # The revision at the last search, and the time of the next search at
        # the same revision.
        self._searched = -1
        self._next = 0
        self._loop = loop.Loop('leavable hosts', self.step, lambda: PACE)

    def step(self) -> None:
        """Write which hosts leases can leave, if that has changed.

        While such a host holds too much, what was found stays valid until the
        replanner has moved the leases.
        """
        now = int(self._clock())
        revision, excess = self._ledger.read_replica(
            lambda replica: (replica.revision, _has_excess(replica, now))
        )
        if excess:
            self._wake_replanner()
        if now < self._next and (excess or revision == self._searched):
            return
        self._next = now + RECHECK
        hosts = self._ledger.read_replica(
            functools.partial(self._hosts_to_try, now=now)
        )
        leases = self._ledger.leases_on(hosts, now)
        found, known = self._search(hosts, leases, now)
        if found != known:
            self._ledger.commit(functools.partial(self._write, found=found))

    def _search(
        self, hosts: Sequence[str], leases: Sequence[Lease], now: int
    ) -> tuple[Leavable, Leavable]:
        """Return which of the hosts leases can leave, now and as found last.

        Commits of this process wait for one host at most. A commit between
        two hosts makes the result one of no revision.

        :param leases: the leases on the hosts
        """
        rules = placing_options.rules(self._conf)
        options = placing_options.read(self._conf.manager)
        movable = [
            each for each in leases
            if rules is not None and replanning.is_movable(each, now)
            and each.start > now + rules.lead
        ]
        # Matching takes long: commits wait for the looks at the replica below.
        for lease in movable:
            lease_placing.match(self._ledger.replica, lease, options)
        search, self._searched, known = self._ledger.read_replica(
            lambda replica: (
                leavable.Search(replica, movable, options), replica.revision,
                leavable.known(replica),
            )
        )
        for host in hosts:
            if not self._ledger.read_replica(functools.partial(
                _try, search=search, host=host, revision=self._searched
            )):
                self._searched = -1
                break
        return search.found(), known

    def _write(self, tx: PlacingTx, found: Leavable) -> None:
        """Write what was found at the revision that was searched.

        At another revision, leases may have taken the room that others would
        have moved to: what is no longer found is dropped, nothing is added,
        and the next step searches again.
        """
        old = leavable.known(tx.replica)
        if tx.replica.revision != self._searched:
            found = leavable.in_both(old, found)
        tx.set_leavable_hosts({
            id_: found.get(id_, ()) for id_ in old.keys() | found.keys()
            if old.get(id_) != found.get(id_)
        })

    def _hosts_to_try(self, replica: state.Replica, now: int) -> list[str]:
        rules = placing_options.rules(self._conf)
        if rules is None:
            return []
        return leavable.hosts_to_try(replica, now, now + rules.lead)


def _try(
    replica: state.Replica, search: leavable.Search, host: str, revision: int
) -> bool:
    """Have leases leave a host on trial, if the revision is still the same."""
    if replica.revision != revision:
        return False
    search.try_host(replica, host)
    return True


def _has_excess(replica: state.Replica, now: int) -> bool:
    """Tell whether a host that leases can leave holds too much."""
    return any(
        overload.is_overloaded(replica, host, now)
        for host in replica.leavable
    )
