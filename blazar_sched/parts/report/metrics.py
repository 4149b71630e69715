# SPDX-License-Identifier: Apache-2.0
"""The metric of what is reserved."""

import prometheus_client

from blazar_sched.replica.metrics import Metric

RESERVED = Metric(
    prometheus_client.Gauge, 'blazar_sched_manager_reserved',
    'Amount that the leases of each project have reserved when this manager '
    'measured the usage last, by resource class; every manager reports the '
    'same number',
    ('project_id', 'resource_class'),
)
LOOKED_UP = (RESERVED,)
