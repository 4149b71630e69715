# SPDX-License-Identifier: Apache-2.0
"""Prometheus metrics: their definition, and those of nova-scheduler's workers.

The workers are many processes with one configuration, so no worker can have a
port of its own: each worker writes a file for the textfile collector of
Prometheus's node_exporter.
"""

from collections.abc import Iterable
import contextlib
import dataclasses
import itertools
import os
import time
from typing import Any
from typing import Protocol

import prometheus_client

# Bounds of the buckets of DECISION_SECONDS, in seconds.
DECISION_BUCKETS = (
    .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .5,
)
# Seconds after which a file that has not been written again is removed. The
# file may belong to a busy worker, which writes a new file the next time.
GONE_AFTER = 120.0

_PREFIX, _SUFFIX = 'blazar-sched-', '.prom'


class Child(Protocol):
    """A Counter with `inc`, a Gauge with `set`, or a Histogram with `observe`.
    """

    def inc(self, amount: float = 1) -> None: ...

    def set(self, value: float) -> None: ...

    def observe(self, amount: float) -> None: ...


@dataclasses.dataclass(frozen=True, slots=True)
class Metric:
    """A metric, as documents and dashboards name it.

    :ivar kind: class of prometheus_client; the name of a Counter is shown
        with ``_total`` appended
    :ivar buckets: buckets of a Histogram, in its unit; () for the default
        buckets of Prometheus
    :ivar zeros: the values of the labels with which a Counter is 0 from the
        beginning, as Prometheus sees no increase in a first value
    """

    kind: type
    name: str
    documentation: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    zeros: tuple[tuple[str, ...], ...] = ()


# The label of all worker metrics: the host and process of the worker.
WORKER = 'worker'

REVISION = Metric(
    prometheus_client.Gauge, 'blazar_sched_replica_revision',
    'Revision of the replica; 0 without a replica', (WORKER,),
)
AGE = Metric(
    prometheus_client.Gauge, 'blazar_sched_replica_age_seconds',
    'Seconds since the replica was known to be up to date; +Inf without a '
    'replica, or if the replica is known to be out of date',
    (WORKER,),
)
STALE = Metric(
    prometheus_client.Gauge, 'blazar_sched_replica_stale',
    '1 if on_stale decides because the replica is too old or missing, else 0',
    (WORKER,),
)
LEFT_OUT = Metric(
    prometheus_client.Gauge, 'blazar_sched_replica_left_out',
    'Records of the ledger that the replica cannot use; the hosts of the '
    'records are closed',
    (WORKER,),
)
CLOCK_DIFFERENCE = Metric(
    prometheus_client.Gauge, 'blazar_sched_clock_difference_seconds',
    "Seconds by which the clock of this node is ahead of the manager's; the "
    "worker decides by the manager's time",
    (WORKER,),
)
PULLS = Metric(
    prometheus_client.Counter, 'blazar_sched_replica_pulls',
    'Requests to a manager for changes, by outcome: done or failed',
    (WORKER, 'outcome'),
)
SNAPSHOTS = Metric(
    prometheus_client.Counter, 'blazar_sched_replica_snapshots',
    'Full copies of the ledger that were taken', (WORKER,),
)
DECISIONS = Metric(
    prometheus_client.Counter, 'blazar_sched_filter_decisions',
    'Requests that a filter answered, by outcome: decided (by the replica), '
    'incomplete (hosts were refused because a check of these hosts failed), '
    'or stale, unknown or failed (by on_stale)',
    (WORKER, 'filter', 'outcome'),
    zeros=tuple(itertools.product(
        ('ReservationFilter', 'LifetimeFilter'), ('incomplete', 'failed')
    )),
)
SEEN = Metric(
    prometheus_client.Counter, 'blazar_sched_filter_hosts_seen',
    'Hosts that Nova passed to a filter', (WORKER, 'filter'),
)
PASSED = Metric(
    prometheus_client.Counter, 'blazar_sched_filter_hosts_passed',
    'Hosts that passed a filter', (WORKER, 'filter'),
)
FIXED = Metric(
    prometheus_client.Counter, 'blazar_sched_filter_fixed',
    'Requests for instances without an end that cannot be live-migrated, in a '
    'cloud that relocates instances: see unbounded_fixed',
    (WORKER, 'filter'),
)
DECISION_SECONDS = Metric(
    prometheus_client.Histogram, 'blazar_sched_filter_decision_seconds',
    'Seconds that a filter took to answer a request, for all hosts of the '
    'request',
    (WORKER, 'filter'), DECISION_BUCKETS,
)

ALL = (
    REVISION, AGE, STALE, LEFT_OUT, CLOCK_DIFFERENCE, PULLS, SNAPSHOTS,
    DECISIONS, SEEN, PASSED, FIXED, DECISION_SECONDS,
)


class Metrics:
    """The metrics of a table, in a registry of their own.

    The metrics are safe to share between threads.

    :param first: values of the labels that come first in all metrics
    """

    def __init__(self, table: Iterable[Metric], *first: str) -> None:
        self.registry = prometheus_client.CollectorRegistry()
        self._first = first
        self._made = {each: self._make(each) for each in table}
        for each in self._made:
            for labels in each.zeros:
                self.of(each, *labels)

    def of(self, metric: Metric, *labels: str) -> Child:
        """Return the Counter, Gauge or Histogram of a metric and labels."""
        labels = (*self._first, *labels)
        made = self._made[metric]
        child: Child = made.labels(*labels) if labels else made
        return child

    def _make(self, metric: Metric) -> Any:
        options: dict[str, Any] = {'registry': self.registry}
        if metric.buckets:
            options['buckets'] = metric.buckets
        if metric.kind is prometheus_client.Gauge:
            # For the processes of a WSGI server, which are shown as one.
            options['multiprocess_mode'] = 'max'
        return metric.kind(
            metric.name, metric.documentation, metric.labels, **options
        )


def write(metrics: Metrics, folder: str, worker: str) -> None:
    """Write the file of a worker, and remove the files of workers now gone.

    :raises OSError: if the file cannot be written
    """
    path = os.path.join(folder, f'{_PREFIX}{worker}{_SUFFIX}')
    prometheus_client.write_to_textfile(path, metrics.registry)
    for each in os.scandir(folder):
        # This includes a file that a killed worker has half written.
        if each.name.startswith(_PREFIX) and _SUFFIX in each.name:
            # Other workers remove such files too.
            with contextlib.suppress(FileNotFoundError):
                if time.time() - each.stat().st_mtime > GONE_AFTER:
                    os.unlink(each.path)


def remove(folder: str, worker: str) -> None:
    """Remove the file of a worker, if there is one."""
    with contextlib.suppress(OSError):
        os.unlink(os.path.join(folder, f'{_PREFIX}{worker}{_SUFFIX}'))
