# SPDX-License-Identifier: Apache-2.0
"""The loop that vacates hosts ahead of the windows in which they are closed.

What a host is closed for does not matter. Each index knows the windows, so the
host is open at the end without anything being done.
"""

from collections.abc import Callable
from collections.abc import Iterator

from oslo_config import cfg

from blazar_sched.domain.host import ClosedWindow
from blazar_sched.domain.host import Host
from blazar_sched.replica import state
from blazar_sched.service import loop
from blazar_sched.service import metrics
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.resources import vacating


class Closing(loop.Looped):
    """The vacating of all hosts that are closed now or soon.

    :param clock: returns the time in epoch seconds
    """

    def __init__(
        self, conf: cfg.ConfigOpts, ledger: Ledger, vacater: vacating.Vacater,
        clock: Callable[[], float], metrics_: metrics.Metrics,
    ) -> None:
        self._conf = conf.manager
        self._ledger = ledger
        self._vacater = vacater
        self._clock = clock
        self._metrics = metrics_
        self._objects = loop.Objects[tuple[Host, ClosedWindow]](
            'closing', metrics_
        )
        self._loop = loop.Loop(
            'closing', self.step, lambda: self._conf.closing_interval
        )

    def step(self) -> None:
        """Vacate the hosts once.

        Any manager may do so, and several may do so at once: each request to
        Nova can be sent twice. Nova is queried only about the hosts on which
        the ledger has servers.

        :raises Unavailable: if Nova does not answer
        """
        now = int(self._clock())
        lead_time = self._conf.vacate_lead_time
        staying = 0

        def vacate(each: tuple[Host, ClosedWindow]) -> None:
            nonlocal staying
            host, closed = each
            servers = self._vacater.all_on(host, closed.start, now)
            if closed.start <= now:
                staying += len(servers)
            self._vacater.vacate(
                vacating.for_closing(host, closed, lead_time), servers, now
            )

        hosts = self._ledger.read_replica(
            lambda replica: [
                each for each in closing(replica, now, lead_time)
                if replica.present.instances_on(each[0].uuid)
            ]
        )
        try:
            self._objects.each(
                ((each[0].uuid, each) for each in hosts), vacate, now
            )
        finally:
            self._metrics.of(metrics.ON_CLOSED).set(staying)


def closing(
    replica: state.Replica, now: int, lead_time: int
) -> Iterator[tuple[Host, ClosedWindow]]:
    """Yield the hosts that are closed now or soon, each with its window.

    The time before a host has come is left out: what is on such a host was
    there when the host was registered.
    """
    for host in replica.closing_hosts():
        for each in host.closed_windows:
            if each.start and each.start - lead_time <= now < each.end:
                yield host, each
