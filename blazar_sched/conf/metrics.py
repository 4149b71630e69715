# SPDX-License-Identifier: Apache-2.0
"""Group ``metrics``: the metrics of the service for Prometheus.

nova-scheduler's workers write files instead: see ``metrics_path`` of
conf.scheduler.
"""

from oslo_config import cfg

GROUP = 'metrics'

opts = [
    cfg.HostAddressOpt(
        'host',
        default='127.0.0.1',
        help='Address on which metrics are told, to whoever asks: no token '
        'is wanted there.',
    ),
    cfg.PortOpt(
        'port',
        default=0,
        help='Port of that, not the one of the API; 0: none are told. An API '
        'and a manager of one machine need files that name two.',
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(opts, GROUP)
