# SPDX-License-Identifier: Apache-2.0
"""The metrics of the state of a manager and of its ledger."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping

from oslo_config import cfg
from prometheus_client import core

from blazar_sched.replica import state
from blazar_sched.service import loop
from blazar_sched.service import metrics
from blazar_sched.service import parts
from blazar_sched.service.booking import placing_options
from blazar_sched.service.bus.notifier import Notifier
from blazar_sched.service.ledger.ledger import Ledger
from blazar_sched.service.ledger.statistics import Statistics

# The values of a metric, by its labels.
Values = Mapping[tuple[str, ...], float]

# The seconds between two reads of the database, and those for which what was
# read is shown.
INTERVAL = 15.0
SHOWN_FOR = 60.0
# The seconds until a database that does not write is tried again, at first.
RETRY = 2.0


class Gauges(loop.Looped):
    """A Prometheus collector, which never raises nor waits for the database.

    A loop reads the database. While the database is away, the metrics from the
    database are left out.

    :param clock: returns the time in epoch seconds
    :param monotonic: returns monotonic seconds
    :param loops: returns the loops of the manager, once they exist
    """

    def __init__(
        self, conf: cfg.ConfigOpts, ledger: Ledger, notifier: Notifier,
        clock: Callable[[], float], monotonic: Callable[[], float],
        loops: Callable[[], Iterable[loop.Loop]],
    ) -> None:
        self._conf = conf
        self._ledger = ledger
        self._notifier = notifier
        self._clock = clock
        self._monotonic = monotonic
        self._loops = loops
        # What was read, with the times at the begin and the end of the read.
        self._read: tuple[Statistics, float, float] | None = None
        self._of_parts: dict[metrics.Metric, Values] = {}
        self._loop = loop.Loop(
            'metrics', self.step,
            lambda: INTERVAL if ledger.is_writable else RETRY,
        )

    def step(self) -> None:
        """Read the metrics from the database.

        :raises Unavailable: if the database does not answer, or write
        """
        try:
            self._ledger.require_writable()
        finally:
            began = self._monotonic()
            found = self._ledger.statistics(int(self._clock()))
            self._of_parts = {
                metric: self._ledger.run(read)
                for each in parts.each(
                    'models', 'GAUGES', parts.running(self._conf)
                )
                for metric, read in each.items()
            }
            self._read = found, began, self._monotonic()

    def describe(self) -> list[core.Metric]:
        """Return no metrics.

        Prometheus would otherwise collect all metrics to learn their names.
        """
        return []

    def collect(self) -> Iterator[core.Metric]:
        yield core.CounterMetricFamily(
            metrics.LOST.name, metrics.LOST.documentation,
            value=self._notifier.lost,
        )
        yield _gauge(
            metrics.LOOPS,
            {(each.name,): each.succeeded_at for each in self._loops()},
        )
        replica = self._ledger.replica
        if replica is not None:
            yield _gauge(metrics.REPLICA_REVISION, {(): replica.revision})
            yield _gauge(metrics.LEFT_OUT, {(): len(replica.left_out)})
            yield _gauge(metrics.HEADROOM, self._headroom(replica))
        yield from self._from_database()

    def _from_database(self) -> Iterator[core.Metric]:
        read = self._read
        if read is None or self._monotonic() - read[2] > SHOWN_FOR:
            yield _gauge(metrics.DATABASE_UP, {(): 0})
            return
        found, began, ended = read
        since = found.due_since
        age = 0.0 if since is None else max(0.0, self._clock() - since)
        yield _gauge(metrics.DATABASE_UP, {(): int(self._ledger.is_writable)})
        yield _gauge(metrics.DATABASE_SECONDS, {(): ended - began})
        yield _gauge(metrics.DUE, {(): found.due})
        yield _gauge(metrics.DUE_AGE, {(): age})
        yield _gauge(metrics.REVISION, {(): found.revision})
        yield _gauge(
            metrics.LEASES,
            {(status,): count for status, count in found.leases.items()},
        )
        yield _gauge(metrics.DEGRADED, {(): found.degraded})
        yield _gauge(metrics.PATHS, {(): found.paths})
        for metric, values in self._of_parts.items():
            yield _gauge(metric, values)
        yield _gauge(
            metrics.HOSTS,
            {('true',): found.available, ('false',): found.unavailable},
        )

    def _headroom(self, replica: state.Replica) -> Values:
        """Return the share that is free later, by resource class.

        No commit waits for this: the replica may be in the middle of a trial.
        """
        rules = placing_options.rules(self._conf)
        total = replica.indexes.total
        if rules is None or total is None:
            return {}
        start = int(self._clock()) + rules.notice
        return {
            (name,): share for name, share in total.free_shares(start).items()
        }


def _gauge(metric: metrics.Metric, values: Values) -> core.Metric:
    family = core.GaugeMetricFamily(
        metric.name, metric.documentation, labels=metric.labels
    )
    for labels, value in values.items():
        family.add_metric(labels, value)
    return family
