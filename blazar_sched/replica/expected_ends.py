# SPDX-License-Identifier: Apache-2.0
"""When instances will probably end, for the order of hosts only.

Nothing is admitted or refused by an expected end.
"""

from collections import Counter
from collections.abc import Iterable
from collections.abc import Mapping

from blazar_sched.domain import lifetime_history
from blazar_sched.domain import window
from blazar_sched.domain.instance import Instance
from blazar_sched.domain.lifetime_history import LifetimeHistory
from blazar_sched.replica.present import Present

# The most hosts whose latest end is computed in one call, so that no request
# waits for long: a new replica knows no end yet.
MAX_COMPUTED = 100


class ExpectedEnds:
    """The expected ends of instances, and the latest of these on each host.

    One writer, any number of readers.

    :param present: the instance records of each host
    :param histories: by id
    """

    def __init__(
        self, present: Present, histories: Mapping[str, LifetimeHistory]
    ) -> None:
        self._present = present
        self._histories = histories
        # How often the instances of a host have changed, and the latest
        # expected end of the host, 0 without instances, as (number of changes,
        # end). A reader may write the end after a change that the reader did
        # not see: the number tells that the end is outdated.
        self._changes: Counter[str] = Counter()
        self._latest: dict[str, tuple[int, int]] = {}

    def note_change(self, host: str) -> None:
        """Note that the records of the instances on a host have changed."""
        self._changes[host] += 1

    def end(
        self, project_id: str, amounts: Mapping[str, int], created: int,
        now: int,
    ) -> int:
        """Return when an unbounded instance will probably end.

        :param created: in epoch seconds, 0 if it is not known
        :returns: epoch seconds, after `now`; FOREVER if nothing is known
        """
        history = self._histories.get(
            lifetime_history.id_of(project_id, amounts)
        )
        if history is None or not created:
            return window.FOREVER
        return now + lifetime_history.remaining(history, now - created)

    def latest(self, hosts: Iterable[str], now: int) -> list[int]:
        """Return the latest expected end on each host, at least `now`.

        An end is computed when the instances of its host have changed, and
        anew once it is past: then the instance has outlived the prediction.
        O(1) for each other host. Above MAX_COMPUTED, outdated ends are used.
        """
        found = []
        computed = 0
        for host in hosts:
            changes = self._changes[host]
            known, end = self._latest.get(host, (0, 0))
            outdated = known != changes or 0 < end <= now
            if outdated and computed < MAX_COMPUTED:
                computed += 1
                end = max(
                    (self._end(each, now)
                     for each in self._present.instances_on(host)
                     if not each.preemptible),
                    default=0,
                )
                self._latest[host] = changes, end
            found.append(max(end, now))
        return found

    def _end(self, instance: Instance, now: int) -> int:
        if now < instance.end < window.FOREVER:
            return instance.end
        return self.end(
            instance.project_id, instance.amounts, instance.created, now
        )
