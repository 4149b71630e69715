# SPDX-License-Identifier: Apache-2.0
"""Puts the layers of the API together."""

from collections.abc import Callable
import functools
from wsgiref import types as wsgi

from oslo_config import cfg
from oslo_middleware import http_proxy_to_wsgi

from blazar_sched.conf import service as service_conf
from blazar_sched.service import metrics as service_metrics
from blazar_sched.service.api import app
from blazar_sched.service.api import auth
from blazar_sched.service.api import caller
from blazar_sched.service.api import errors
from blazar_sched.service.api import health
from blazar_sched.service.api import microversion
from blazar_sched.service.api import request_id
from blazar_sched.service.api import request_log
from blazar_sched.service.api import request_metrics
from blazar_sched.service.metrics import Metrics

# Builds a WSGI layer around an application.
Layer = Callable[[wsgi.WSGIApplication], wsgi.WSGIApplication]


def deploy(
    conf: cfg.ConfigOpts,
    manager: caller.Manager,
    metrics: Metrics | None = None,
) -> wsgi.WSGIApplication:
    """Build the API as a WSGI application.

    It does not know on which address it is served: only `server` can refuse
    to serve ``noauth`` on one that others reach.

    :param conf: the service's configuration
    :param manager: `service.bus.rpc.Client`, or what calls like it
    :param metrics: count the requests
    :raises oslo_config.cfg.Error: if a value cannot be read
    """
    # From the outside in: the order in which a request passes them.
    layers: tuple[Layer, ...] = (
        # Counts and times them, whatever becomes of them.
        functools.partial(
            request_metrics.RequestMetrics,
            metrics=metrics or service_metrics.new(),
        ),
        # Behind a proxy, if told so: has links begin with the proxy's address.
        functools.partial(http_proxy_to_wsgi.HTTPProxyToWSGI, conf=conf),
        # Names the request, before anything can go wrong with it.
        request_id.RequestId,
        # Answers for what goes wrong unforeseen, under that name.
        errors.Faults,
        # Tells load balancers, which have no token, whether to ask here.
        functools.partial(health.Health, conf=conf, manager=manager),
        # Has a log line for each answer, but to load balancers.
        request_log.RequestLog,
        # Finds out who calls; nothing further in believes a header.
        functools.partial(auth.LAYERS[conf.api.auth_strategy], conf=conf),
        # Refuses versions of the API that are not there.
        microversion.Microversion,
    )
    application: wsgi.WSGIApplication = app.application(conf, manager)
    for layer in reversed(layers):
        application = layer(application)
    # The layers have registered options of their own.
    service_conf.require_values(conf)
    return application
