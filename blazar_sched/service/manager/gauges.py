# SPDX-License-Identifier: Apache-2.0
"""The metrics that a manager reads when its metrics are collected."""

from collections import Counter
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping

from oslo_config import cfg
from oslo_log import log
from prometheus_client import core

from blazar_sched.domain import exception
from blazar_sched.domain.threshold import Threshold
from blazar_sched.replica import state
from blazar_sched.service import loop
from blazar_sched.service import metrics
from blazar_sched.service.booking import placing_options
from blazar_sched.service.bus.notifier import Notifier
from blazar_sched.service.ledger.ledger import Ledger

LOG = log.getLogger(__name__)


class Gauges:
    """A Prometheus collector, which never raises.

    While the database is away, the metrics from the database are left out.

    :param clock: returns the time in epoch seconds
    :param loops: returns the loops of the manager, once they exist
    :param thresholds: returns the thresholds, each with its number
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        ledger: Ledger,
        notifier: Notifier,
        clock: Callable[[], float],
        loops: Callable[[], Iterable[loop.Loop]],
        thresholds: Callable[[], Mapping[Threshold, int]],
    ) -> None:
        self._conf = conf
        self._ledger = ledger
        self._notifier = notifier
        self._clock = clock
        self._loops = loops
        self._thresholds = thresholds

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
        yield _gauge(
            metrics.FREE,
            {
                (each.id, each.name): free
                for each, free in self._thresholds().items()
            },
        )
        replica = self._ledger.replica
        if replica is not None:
            yield _gauge(metrics.REPLICA_REVISION, {(): replica.revision})
            yield _gauge(metrics.LEFT_OUT, {(): len(replica.left_out)})
            yield _gauge(metrics.HEADROOM, self._headroom(replica))
            yield _gauge(metrics.LENT, _lent(replica))
        try:
            found = self._ledger.statistics()
        except exception.Unavailable as e:
            LOG.warning('Could not read metrics from the ledger: %s', e)
            return
        yield _gauge(metrics.REVISION, {(): found.revision})
        yield _gauge(
            metrics.LEASES,
            {(status,): count for status, count in found.leases.items()},
        )
        yield _gauge(metrics.DEGRADED, {(): found.degraded})
        yield _gauge(metrics.PATHS, {(): found.paths})
        yield _gauge(metrics.WAITING, {(): found.waiting})
        yield _gauge(
            metrics.HOSTS,
            {('true',): found.available, ('false',): found.unavailable},
        )

    def _headroom(
        self, replica: state.Replica
    ) -> dict[tuple[str, ...], float]:
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


def _lent(replica: state.Replica) -> dict[tuple[str, ...], float]:
    """Return how many units are lent, by resource type."""
    found: Counter[tuple[str, ...]] = Counter()
    for id_ in tuple(replica.lending):
        lender = replica.reservations.get(id_)
        if lender is not None:
            found[lender.resource_type,] += sum(
                (*lender.lent.values(), *lender.recalled.values())
            )
    return dict(found)


def _gauge(
    metric: metrics.Metric, values: dict[tuple[str, ...], float]
) -> core.Metric:
    family = core.GaugeMetricFamily(
        metric.name, metric.documentation, labels=metric.labels
    )
    for labels, value in values.items():
        family.add_metric(labels, value)
    return family
