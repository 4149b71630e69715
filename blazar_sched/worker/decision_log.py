# SPDX-License-Identifier: Apache-2.0
"""The last decisions of a process, kept for questions about them.

A request only leaves references here. Nova's HostStates are large and belong
to one request, so the HostStates are kept only until the next `settle`, which
does not run in the thread of a request.
"""

import collections
from collections.abc import Callable
import threading

from blazar_sched.replica import state
from blazar_sched.worker.decision import Decision
from blazar_sched.worker.decision import Explanation
from blazar_sched.worker.recorded_hosts import RecordedHosts

# The most decisions that wait to be settled, and the number from which
# settling is requested.
MAX_FRESH = 20
MANY_FRESH = 10
# The number of decisions after which the hosts that are gone are forgotten.
FORGET_AFTER = 1000


class Decisions:
    """The newest decisions; safe to share between threads.

    :param kept: returns how many decisions to keep; 0 for none
    :param wake: called when `settle` should be called soon
    """

    def __init__(
        self, kept: Callable[[], int], wake: Callable[[], object]
    ) -> None:
        self._kept = kept
        self._wake = wake
        self._fresh: collections.deque[Decision] = collections.deque(
            maxlen=MAX_FRESH
        )
        self._settled: collections.deque[Decision] = collections.deque()
        # The hosts that the settled decisions share; older decisions may
        # share an earlier object.
        self._hosts = RecordedHosts()
        self._settled_with_hosts = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._fresh) + len(self._settled)

    def add(self, decision: Decision) -> None:
        """Note a decision; never wait."""
        if not self._kept():
            return
        self._fresh.append(decision)
        if len(self._fresh) >= MANY_FRESH:
            self._wake()

    def settle(self, replica: state.Replica | None) -> None:
        """Settle the noted decisions, and forget decisions that are too old.

        :param replica: the replica that the decisions were made by, or a later
            one
        """
        with self._lock:
            while self._fresh:
                decision = self._fresh.popleft()
                decision.settle(replica, self._hosts_to_share())
                self._settled.append(decision)
            kept = self._kept()
            while len(self._settled) > kept:
                self._settled.popleft()

    def _hosts_to_share(self) -> RecordedHosts:
        self._settled_with_hosts += 1
        if self._settled_with_hosts > FORGET_AFTER:
            self._hosts, self._settled_with_hosts = RecordedHosts(), 1
        return self._hosts

    def explain(
        self, replica: state.Replica | None, instance_uuid: str,
        host: str | None = None,
    ) -> list[Explanation]:
        """Return the decisions about an instance, the oldest decision first.

        :param host: the only host to explain, by its name; None for all
        """
        self.settle(replica)
        with self._lock:
            found = [
                each for each in self._settled
                if each.instance_uuid == instance_uuid
            ]
        return [each.explain(replica, host) for each in found]
