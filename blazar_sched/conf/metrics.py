# SPDX-License-Identifier: Apache-2.0
"""Group ``metrics``: the metrics of the service for Prometheus.

nova-scheduler's workers write files instead: see ``metrics_path`` of
conf.scheduler.
"""

from oslo_config import cfg

GROUP = 'metrics'

opts = [
    cfg.HostAddressOpt(
        'host', default='127.0.0.1',
        help='IP address or host name on which the service exposes its '
        'metrics. Requests are not authenticated.',
    ),
    cfg.PortOpt(
        'port', default=0,
        help='TCP port on which the service exposes its metrics; it must '
        'differ from [api] port. 0 disables the metrics. If the API and the '
        'manager run as two processes on one machine, give each a '
        'configuration file with a port of its own.',
    ),
]
