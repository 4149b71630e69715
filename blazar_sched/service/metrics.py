# SPDX-License-Identifier: Apache-2.0
"""The metrics of the service in a single table, and their HTTP server.

The metrics of nova-scheduler's workers are in replica.metrics.
"""

from typing import Any

from oslo_config import cfg
from oslo_log import log
import prometheus_client

from blazar_sched.replica import metrics

LOG = log.getLogger(__name__)

Metric = metrics.Metric
Metrics = metrics.Metrics

# In seconds.
_LATENESS_BUCKETS = (.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)

# The outcomes of a call of the manager, and of an attempt at an event.
ANSWERED, REFUSED, FAILED = 'answered', 'refused', 'failed'
DONE, PUT_OFF, GIVEN_UP = 'done', 'put_off', 'given_up'

REQUESTS = Metric(
    prometheus_client.Counter,
    'blazar_sched_api_requests',
    'Requests that the API answered; the route is that of the API reference, '
    'or "other"',
    ('route', 'method', 'status'),
)
REQUEST_SECONDS = Metric(
    prometheus_client.Histogram,
    'blazar_sched_api_request_seconds',
    'Time from a request to the head of its answer',
    ('route', 'method'),
)
CALL_SECONDS = Metric(
    prometheus_client.Histogram,
    'blazar_sched_manager_call_seconds',
    'Time that the manager took for a call: answered, refused (with an error '
    'that is the answer) or failed',
    ('method', 'outcome'),
)
EVENTS = Metric(
    prometheus_client.Counter,
    'blazar_sched_manager_events',
    'Tries of events: done, put_off to be tried again or left to another '
    'manager, given_up',
    ('type', 'outcome'),
)
LATENESS = Metric(
    prometheus_client.Histogram,
    'blazar_sched_manager_event_lateness_seconds',
    'Time from when an event was due until this manager began it; a start '
    'also waits for the lease before it',
    ('type',),
    _LATENESS_BUCKETS,
)
COMMIT_SECONDS = Metric(
    prometheus_client.Histogram,
    'blazar_sched_manager_commit_seconds',
    'Time that a commit took, with the wait for the ones before it and with '
    'its retries',
)
CONFLICTS = Metric(
    prometheus_client.Counter,
    'blazar_sched_manager_conflicts',
    'Transactions that the database refused, or lost, and that were run again',
)

CLOCK_DIFFERENCE = Metric(
    prometheus_client.Gauge,
    'blazar_sched_manager_clock_difference_seconds',
    "How far this manager's clock is ahead of the database's, below zero if "
    'behind; it does no event beyond [manager] clock_tolerance',
)

# The metrics that are counted as things happen.
COUNTED = (
    REQUESTS, REQUEST_SECONDS, CALL_SECONDS, EVENTS, LATENESS, COMMIT_SECONDS,
    CONFLICTS, CLOCK_DIFFERENCE,
)

LEASES = Metric(
    prometheus_client.Gauge,
    'blazar_sched_manager_leases',
    'Leases in the ledger; every manager tells the same',
    ('status',),
)
HOSTS = Metric(
    prometheus_client.Gauge,
    'blazar_sched_manager_hosts',
    'Registered hosts, by whether they get new allocations (true) or have '
    'failed or are disabled (false); every manager tells the same',
    ('available',),
)
REVISION = Metric(
    prometheus_client.Gauge,
    'blazar_sched_manager_revision',
    "The ledger's newest revision; replicas follow it",
)
REPLICA_REVISION = Metric(
    prometheus_client.Gauge,
    'blazar_sched_manager_replica_revision',
    "Revision of this manager's own replica, which each of its commits "
    'brings to the newest one',
)
LEFT_OUT = Metric(
    prometheus_client.Gauge,
    'blazar_sched_manager_left_out',
    "Records of the ledger that this manager's own replica cannot use; their "
    'hosts are closed',
)
DEGRADED = Metric(
    prometheus_client.Gauge,
    'blazar_sched_manager_leases_degraded',
    'Leases that are not over and lack something of what they have reserved; '
    'every manager tells the same',
)
LOOPS = Metric(
    prometheus_client.Gauge,
    'blazar_sched_manager_loop_success_timestamp_seconds',
    'When each loop of this manager last did its work without a failure, or '
    'was started, in seconds since 1970',
    ('loop',),
)
LOST = Metric(
    prometheus_client.Counter,
    'blazar_sched_manager_notifications_lost',
    'Notifications that could not be sent',
)

# The metrics that are read on each request; see service.manager.gauges.
LOOKED_UP = (
    LEASES, DEGRADED, HOSTS, REVISION, REPLICA_REVISION, LEFT_OUT, LOOPS, LOST,
)

#: Every metric of the service and of nova-scheduler's workers.
ALL = (*COUNTED, *LOOKED_UP, *metrics.ALL)


def new() -> Metrics:
    """Return the metrics that a process of the service counts."""
    return Metrics(COUNTED)


def serve(conf: cfg.ConfigOpts, told: Metrics) -> Any:
    """Serve metrics on [metrics] host and port, in a thread, unless port is 0.

    :returns: the HTTP server, None if there is none
    :raises OSError: if the address is not available
    """
    host, port = conf.metrics.host, conf.metrics.port
    if not port:
        return None
    try:
        server, _ = prometheus_client.start_http_server(
            port, host, told.registry
        )
    except OSError as e:
        raise OSError(
            e.errno, f'{e.strerror}: [metrics] host {host}, port {port}'
        ) from e
    LOG.info('Serving metrics on %s port %d', host, port)
    return server
