# SPDX-License-Identifier: Apache-2.0
"""The last decisions of a process, for who asks why.

A request only leaves references here. Nova's HostStates are large and of one
request, so they are kept no longer than until the next `settle`, which is not
done in a request's thread.
"""

import collections
from collections.abc import Callable
import threading
from typing import Any
from typing import Protocol

from blazar_sched.replica import state
from blazar_sched.worker.seen import Hosts

# Decisions that wait at most to be settled, and how many ask for it.
MOST_FRESH = 20
MANY_FRESH = 10
# Decisions after which hosts that are gone are forgotten.
FORGET_AFTER = 1000


class Decision(Protocol):
    """What a filter has decided; see worker.explanation.

    `seen` and `passed` are how many hosts it was about, and how many passed.
    """

    filter: str
    outcome: str
    instance_uuid: str | None
    seen: int
    passed: int

    def settle(
        self, replica: state.Replica | None, hosts: Hosts
    ) -> None:
        """Keep no more than it takes to explain it.

        :param hosts: what other decisions keep, too
        """

    def explain(
        self, replica: state.Replica | None, host: str | None
    ) -> dict[str, Any]:
        """Return it with its reasons, in JSON primitives.

        :param replica: where reasons are looked for
        :param host: the only one to speak of, by its name; None for all
        """


class Decisions:
    """The newest decisions; safe to share between threads.

    :param kept: returns how many to keep; 0 for none
    :param wake: called when `settle` should be called soon
    """

    def __init__(
        self, kept: Callable[[], int], wake: Callable[[], object]
    ) -> None:
        self._kept = kept
        self._wake = wake
        self._fresh: collections.deque[Decision] = collections.deque(
            maxlen=MOST_FRESH
        )
        self._settled: collections.deque[Decision] = collections.deque()
        # What the settled ones share; the older of them may have other hosts.
        self._hosts = Hosts()
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
        """Reduce what was noted, and forget what is too old.

        :param replica: which they were decided by, or a later one
        """
        with self._lock:
            while self._fresh:
                decision = self._fresh.popleft()
                decision.settle(replica, self._hosts_to_share())
                self._settled.append(decision)
            kept = self._kept()
            while len(self._settled) > kept:
                self._settled.popleft()

    def _hosts_to_share(self) -> Hosts:
        self._settled_with_hosts += 1
        if self._settled_with_hosts > FORGET_AFTER:
            self._hosts, self._settled_with_hosts = Hosts(), 1
        return self._hosts

    def explain(
        self,
        replica: state.Replica | None,
        instance_uuid: str,
        host: str | None = None,
    ) -> list[dict[str, Any]]:
        """Return the decisions about an instance, the oldest one first.

        :param host: the only one to speak of, by its name; None for all
        """
        self.settle(replica)
        with self._lock:
            found = [
                each for each in self._settled
                if each.instance_uuid == instance_uuid
            ]
        return [each.explain(replica, host) for each in found]
