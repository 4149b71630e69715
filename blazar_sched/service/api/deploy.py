# SPDX-License-Identifier: Apache-2.0
"""The assembly of the WSGI layers of the API."""

from collections.abc import Callable
from collections.abc import Iterable
import functools
import itertools
from wsgiref import types as wsgi

from oslo_config import cfg
from oslo_middleware import http_proxy_to_wsgi
import webob

from blazar_sched.conf import service as service_conf
from blazar_sched.service import metrics as service_metrics
from blazar_sched.service import parts
from blazar_sched.service.api import app
from blazar_sched.service.api import audit
from blazar_sched.service.api import auth
from blazar_sched.service.api import caller
from blazar_sched.service.api import compression
from blazar_sched.service.api import errors
from blazar_sched.service.api import health
from blazar_sched.service.api import microversion
from blazar_sched.service.api import path
from blazar_sched.service.api import request_id
from blazar_sched.service.api import request_log
from blazar_sched.service.api import request_metrics
from blazar_sched.service.api import routes
from blazar_sched.service.api.route import Beside
from blazar_sched.service.metrics import Metrics

# A function that builds a WSGI layer around an application.
Layer = Callable[[wsgi.WSGIApplication], wsgi.WSGIApplication]


class _ProxyHeaders(http_proxy_to_wsgi.HTTPProxyToWSGI):
    """Applies the headers of a proxy, if configured, without WebOb's response.

    Such a response makes each Location absolute, with the Host header, which
    anyone may send.
    """

    def __call__(
        self, environ: wsgi.WSGIEnvironment, start_response: wsgi.StartResponse
    ) -> Iterable[bytes]:
        self.process_request(webob.Request(environ))
        assert self.application is not None
        return self.application(environ, start_response)


def deploy(
    conf: cfg.ConfigOpts, manager: caller.Manager,
    metrics: Metrics | None = None,
) -> wsgi.WSGIApplication:
    """Build the API as a WSGI application.

    The application does not know the address on which it is served: only
    `server` can refuse to serve ``noauth`` on an address that other machines
    reach.

    :param conf: the service's configuration
    :param manager: `service.bus.rpc.Client`, or an object with the same calls
    :param metrics: count the requests
    :raises oslo_config.cfg.Error: if a value cannot be read or used
    """
    running = parts.running(conf)
    answered = routes.of(running)
    beside: list[Beside] = list(
        itertools.chain.from_iterable(parts.each('api', 'LAYERS', running))
    )
    # From the outermost to the innermost layer, in the order in which a
    # request passes them.
    layers: tuple[Layer, ...] = (
        # Counts and times all requests, whatever their response.
        functools.partial(
            request_metrics.RequestMetrics,
            metrics=metrics or service_metrics.new(),
            paths={
                *(route.path for route in answered),
                *(path for each in beside for path in each.paths),
            },
        ),
        # Compresses long responses, for callers that take it.
        compression.Compression,
        # Behind a proxy, if configured: makes links begin with the proxy's
        # address.
        functools.partial(_ProxyHeaders, conf=conf),
        # Gives the request an id, before any error can occur.
        request_id.RequestId,
        # Answers unexpected errors, under that id.
        errors.Faults,
        # Tells load balancers, which have no token, whether this API is
        # healthy.
        functools.partial(health.Health, conf=conf, manager=manager),
        # Logs each response, except responses to load balancers.
        request_log.RequestLog,
        # Answer at paths of their own, for callers without a token.
        *(
            functools.partial(each.layer, conf=conf, manager=manager)
            for each in beside
        ),
        # Removes a slash at the end of the path, as Blazar's server does.
        path.WithoutEnd,
        # Refuses versions of the API that do not exist, and names the version
        # in every response of the layers below, also to an unknown caller.
        microversion.Microversion,
        # Identifies the caller; no inner layer trusts a header.
        functools.partial(auth.LAYERS[conf.api.auth_strategy], conf=conf),
        # Tells the audit trail, if configured, what the caller requests.
        *(
            [functools.partial(audit.Audit, conf=conf)]
            if conf.audit.enabled else []
        ),
    )
    application: wsgi.WSGIApplication = app.application(
        conf, manager, answered
    )
    for layer in reversed(layers):
        application = layer(application)
    # The layers have registered further options.
    service_conf.require_values(conf)
    return application
