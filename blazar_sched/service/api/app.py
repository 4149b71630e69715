# SPDX-License-Identifier: Apache-2.0
"""The Falcon application: routes, the body reader, and the form of errors."""

from collections.abc import Iterable

import falcon
from oslo_config import cfg

from blazar_sched.service.api import caller
from blazar_sched.service.api import errors
from blazar_sched.service.api import media
from blazar_sched.service.api import policies
from blazar_sched.service.api import policy
from blazar_sched.service.api import refusal
from blazar_sched.service.api import routes
from blazar_sched.service.api import waiting
from blazar_sched.service.api.route import Route


class RequestChecks:
    """Falcon middleware with the checks of every request, for any path."""

    def process_request(
        self, req: falcon.Request, resp: falcon.Response
    ) -> None:
        text = req.path + falcon.uri.decode(req.query_string)
        if media.UNSTORABLE.search(text):
            raise falcon.HTTPBadRequest(
                description='the path or query has a NUL character'
            )
        if not req.client_accepts_json:
            raise falcon.HTTPNotAcceptable(
                description='Accept must allow application/json'
            )
        if (
            req.method not in ('GET', 'HEAD')
            and '*' not in (req.if_match or ['*'])
        ):
            raise falcon.HTTPPreconditionFailed(
                description='If-Match names an entity tag, and what can be '
                'changed has none'
            )


def application(
    conf: cfg.ConfigOpts, manager: caller.Manager, answered: Iterable[Route]
) -> errors.App:
    """Build the innermost WSGI application; `deploy` adds its layers."""
    app = falcon.App(middleware=(media.AnyCase(), RequestChecks()))
    app.req_options.media_handlers = falcon.media.Handlers(
        {falcon.MEDIA_JSON: media.StrictJSON(conf.api.max_request_body_size)}
    )
    errors.register(app)
    refusal.register(app)
    routes.add_to(
        app, answered, manager, policy.Enforcer(conf, policies.list_rules()),
        waiting.Waiting(conf.api.threads),
    )
    return app
