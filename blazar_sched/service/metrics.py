# SPDX-License-Identifier: Apache-2.0
"""The metrics of the service in a single table, and their HTTP server.

The metrics of nova-scheduler's workers are in replica.metrics.
"""

from collections.abc import Callable
import os
import threading
from typing import Any
from wsgiref import simple_server

from oslo_config import cfg
from oslo_log import log
import prometheus_client
from prometheus_client import exposition
from prometheus_client import multiprocess

from blazar_sched.replica import metrics
from blazar_sched.replica import wire

LOG = log.getLogger(__name__)

Metric = metrics.Metric
Metrics = metrics.Metrics

# In seconds.
_LATENESS_BUCKETS = (.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)

# The outcomes of a call of the manager, of an attempt at an event, and of a
# request to Nova.
ACCEPTED = 'accepted'
ANSWERED, REFUSED, FAILED = 'answered', 'refused', 'failed'
DONE, PUT_OFF, GIVEN_UP = 'done', 'put_off', 'given_up'

REQUESTS = Metric(
    prometheus_client.Counter, 'blazar_sched_api_requests',
    'Requests that the API answered, by the route as in the API reference, '
    'or "other"',
    ('route', 'method', 'status'),
)
REQUEST_SECONDS = Metric(
    prometheus_client.Histogram, 'blazar_sched_api_request_seconds',
    'Seconds from a request to the head of its response', ('route', 'method'),
)
CALL_SECONDS = Metric(
    prometheus_client.Histogram, 'blazar_sched_manager_call_seconds',
    'Seconds that the manager took for a call, by outcome: answered, refused '
    '(the answer is an error) or failed',
    ('method', 'outcome'),
)
REFUSALS = Metric(
    prometheus_client.Counter, 'blazar_sched_manager_refusals',
    'Calls that the manager refused, by the class of the error, which is the '
    'error_name in the response of the API',
    ('method', 'reason'),
)
BUS_CALLS = Metric(
    prometheus_client.Counter, 'blazar_sched_api_calls',
    'Calls of the API to a manager over the message bus, by outcome: '
    'answered, refused (the answer is an error) or failed (no manager could '
    'answer)',
    ('outcome',), zeros=((ANSWERED,), (REFUSED,), (FAILED,)),
)
EVENTS = Metric(
    prometheus_client.Counter, 'blazar_sched_manager_events',
    'Attempts at events, by outcome: done, put_off (retried later, or left to '
    'another manager) or given_up',
    ('type', 'outcome'),
)
LATENESS = Metric(
    prometheus_client.Histogram, 'blazar_sched_manager_event_lateness_seconds',
    'Seconds from the time of an event until this manager began the event; a '
    'start also waits for the end of the lease before',
    ('type',), _LATENESS_BUCKETS,
)
COMMIT_SECONDS = Metric(
    prometheus_client.Histogram, 'blazar_sched_manager_commit_seconds',
    'Seconds that a commit took, with the wait for earlier commits and with '
    'retries',
)
HELD_SECONDS = Metric(
    prometheus_client.Histogram, 'blazar_sched_manager_commit_held_seconds',
    'Seconds for which a commit, also one that fails or only tries, has held '
    'the lock for which all other commits wait, by what has made the commit: '
    'a call of the manager, a loop, or a type of event',
    ('cause',), (.002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10),
)
CONFLICTS = Metric(
    prometheus_client.Counter, 'blazar_sched_manager_conflicts',
    'Transactions that the database refused or lost, and that were retried',
)

CLOCK_DIFFERENCE = Metric(
    prometheus_client.Gauge, 'blazar_sched_manager_clock_difference_seconds',
    "Seconds by which this manager's clock is ahead of the database's clock; "
    'the manager executes no event beyond [manager] clock_tolerance',
)

LATE_PLACEMENTS = Metric(
    prometheus_client.Counter, 'blazar_sched_manager_late_placements',
    'Instances that nova-scheduler placed more than 60 seconds before it told '
    'this manager, by the clocks of both, or as long after that',
)
MOVES = Metric(
    prometheus_client.Counter, 'blazar_sched_manager_moves',
    'Live migrations along relocation paths that this manager has requested, '
    'by whether Nova has accepted the request: accepted or refused; failed '
    'counts the moves that had to be requested again',
    ('outcome',), zeros=((ACCEPTED,), (REFUSED,), (FAILED,)),
)
UNPLANNED = Metric(
    prometheus_client.Gauge, 'blazar_sched_manager_instances_unplanned',
    'Instances that must leave their host before a reservation starts, and '
    'for which no other host has room; every manager reports the same number',
)
LATE = Metric(
    prometheus_client.Gauge, 'blazar_sched_manager_instances_late',
    'Instances that are still on their host, although a reservation needs the '
    'host and another host has room for them; every manager reports the same '
    'number',
)

ON_CLOSED = Metric(
    prometheus_client.Gauge, 'blazar_sched_manager_servers_on_closed_hosts',
    'Instances that are on hosts that are closed; every manager reports the '
    'same number',
)

FAILING = Metric(
    prometheus_client.Gauge, 'blazar_sched_manager_objects_failing',
    'Objects of a loop, such as leases, that this manager failed to handle at '
    'the last try; the log names each of them',
    ('loop',),
)
BUILD = Metric(
    prometheus_client.Gauge, 'blazar_sched_build_info',
    'Always 1, with the version of the program and of its wire format',
    ('version', 'wire'),
)

# The metrics that are counted as things happen.
COUNTED = (
    BUILD,
    REQUESTS, REQUEST_SECONDS, BUS_CALLS, CALL_SECONDS, REFUSALS, EVENTS,
    LATENESS, COMMIT_SECONDS, HELD_SECONDS, CONFLICTS, CLOCK_DIFFERENCE,
    LATE_PLACEMENTS, MOVES, UNPLANNED, LATE, ON_CLOSED, FAILING,
)

LEASES = Metric(
    prometheus_client.Gauge, 'blazar_sched_manager_leases',
    'Leases that are not over; every manager reports the same number',
    ('status',),
)
HOSTS = Metric(
    prometheus_client.Gauge, 'blazar_sched_manager_hosts',
    'Registered hosts, by whether they get new allocations (true) or have '
    'failed or are disabled (false); every manager reports the same numbers',
    ('available',),
)
PATHS = Metric(
    prometheus_client.Gauge, 'blazar_sched_manager_relocation_paths',
    'Instances with a relocation path; every manager reports the same number',
)
DUE = Metric(
    prometheus_client.Gauge, 'blazar_sched_manager_events_due',
    'Events that are due and not over; every manager reports the same number',
)
DUE_AGE = Metric(
    prometheus_client.Gauge, 'blazar_sched_manager_event_due_age_seconds',
    'Seconds since the first of the events that are due became due, 0 if none '
    'is due; every manager reports the same number',
)
DATABASE_UP = Metric(
    prometheus_client.Gauge, 'blazar_sched_manager_database_up',
    '1 if this manager has read the database in the last minute and its last '
    'write was made, else 0; without a read the metrics from the database are '
    'left out',
)
DATABASE_SECONDS = Metric(
    prometheus_client.Gauge, 'blazar_sched_manager_database_seconds',
    'Seconds that this manager took to read the metrics from the database',
)
HEADROOM = Metric(
    prometheus_client.Gauge, 'blazar_sched_manager_relocation_headroom_ratio',
    'Share of the capacity of all registered hosts that is neither allocated '
    'to reservations nor used by instances at any time from relocation_notice '
    'seconds after now on, by the resource class VCPU or MEMORY_MB. An '
    'instance uses capacity until its end. Below 0, more is promised than the '
    'hosts have. Every manager reports the same number; no number without '
    'relocate_instances',
    ('resource_class',),
)
REVISION = Metric(
    prometheus_client.Gauge, 'blazar_sched_manager_revision',
    'Newest revision of the ledger',
)
REPLICA_REVISION = Metric(
    prometheus_client.Gauge, 'blazar_sched_manager_replica_revision',
    "Revision of this manager's own replica, which each commit of this "
    'manager brings up to date',
)
LEFT_OUT = Metric(
    prometheus_client.Gauge, 'blazar_sched_manager_left_out',
    "Records of the ledger that this manager's own replica cannot use; the "
    'hosts of the records are closed',
)
DEGRADED = Metric(
    prometheus_client.Gauge, 'blazar_sched_manager_leases_degraded',
    'Leases that have not ended and lack a part of their resources; every '
    'manager reports the same number',
)
LOOPS = Metric(
    prometheus_client.Gauge,
    'blazar_sched_manager_loop_success_timestamp_seconds',
    'Time at which each loop of this manager last succeeded, or was started, '
    'in seconds since 1970',
    ('loop',),
)
LOST = Metric(
    prometheus_client.Counter, 'blazar_sched_manager_notifications_lost',
    'Notifications that could not be sent',
)

# The metrics of a manager's state; see service.manager.gauges.
LOOKED_UP = (
    LEASES, DEGRADED, HOSTS, PATHS, DUE, DUE_AGE, DATABASE_UP,
    DATABASE_SECONDS, HEADROOM, REVISION, REPLICA_REVISION, LEFT_OUT, LOOPS,
    LOST,
)

#: Every metric of the service and of nova-scheduler's workers, but for the
#: `GAUGES` of parts.
ALL = (*COUNTED, *LOOKED_UP, *metrics.ALL)


def new() -> Metrics:
    """Return the metrics that a process of the service counts."""
    made = Metrics(COUNTED)
    found = wire.versions()
    made.of(BUILD, found['version'], str(found['wire'])).set(1)
    prometheus_client.ProcessCollector(registry=made.registry)
    return made


class _SharedServer(exposition.ThreadingWSGIServer):
    """A server at a port that processes of one user share."""

    # The kernel gives each connection to one of the processes.
    allow_reuse_port = True


class _Silent(simple_server.WSGIRequestHandler):
    """A handler that does not log each scrape."""

    def log_message(self, format: str, *args: Any) -> None:
        pass


def serve_workers(conf: cfg.ConfigOpts) -> None:
    """Serve the metrics of all processes of a WSGI server, in a thread.

    Each process does so, at the same port, as [metrics] says. Nothing is
    served without prometheus_client's PROMETHEUS_MULTIPROC_DIR.
    """
    host, port = conf.metrics.host, conf.metrics.port
    if not port or 'PROMETHEUS_MULTIPROC_DIR' not in os.environ:
        return
    registry = prometheus_client.CollectorRegistry()
    collect: Callable[..., object] = multiprocess.MultiProcessCollector
    collect(registry)
    try:
        server = simple_server.make_server(
            host, port, prometheus_client.make_wsgi_app(registry),
            _SharedServer, _Silent,
        )
    except OSError as e:
        # The API works without.
        LOG.error('No metrics: %s: [metrics] host %s, port %d', e, host, port)
        return
    threading.Thread(
        target=server.serve_forever, name='metrics', daemon=True
    ).start()


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
