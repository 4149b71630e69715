# SPDX-License-Identifier: Apache-2.0
"""The audit trail of the API, by the middleware of keystonemiddleware."""

from collections.abc import Iterable
import configparser
import importlib.resources
from wsgiref import types as wsgi

from keystonemiddleware import audit
from oslo_config import cfg

from blazar_sched.conf import audit as audit_conf
from blazar_sched.service.api import auth

# The map that is used unless the operator names another.
MAP = importlib.resources.files(__package__) / 'api_audit_map.conf'


class Audit:
    """A WSGI layer that sends events about the requests of known callers.

    A request that needs no token has no caller, and is not audited.

    :raises oslo_config.cfg.Error: if the map cannot be read, or the events
        would be sent nowhere, or without a limit of time
    """

    def __init__(
        self, application: wsgi.WSGIApplication, conf: cfg.ConfigOpts
    ) -> None:
        options = conf[audit_conf.GROUP]
        self._application = application
        try:
            self._audited = audit.AuditMiddleware(
                application, oslo_config_config=conf,
                audit_map_file=options.audit_map_file or str(MAP),
                ignore_req_list=','.join(options.ignore_req_list),
            )
        except (
            OSError, ValueError, configparser.Error,
            audit.PycadfAuditApiConfigError,
        ) as e:
            raise cfg.Error(f'[audit] audit_map_file: {e}') from e
        _check_sending(conf)

    def __call__(
        self, environ: wsgi.WSGIEnvironment, start_response: wsgi.StartResponse
    ) -> Iterable[bytes]:
        caller = environ.get(auth.CONTEXT)
        if caller is None or not caller.user_id:
            return self._application(environ, start_response)
        # The layer of the token may leave headers as the client has sent them.
        environ['HTTP_X_USER_ID'] = caller.user_id
        environ['HTTP_X_USER_NAME'] = caller.user_name or caller.user_id
        environ['HTTP_X_PROJECT_ID'] = caller.project_id or ''
        answer: Iterable[bytes] = self._audited(environ, start_response)
        return answer


def _check_sending(conf: cfg.ConfigOpts) -> None:
    options = conf[audit.AUDIT_MIDDLEWARE_GROUP]
    shared = conf.oslo_messaging_notifications
    drivers = [options.driver] if options.driver else shared.driver
    if not options.use_oslo_messaging:
        return
    if not drivers:
        raise cfg.Error(
            '[audit] enabled: the events would be sent nowhere: set '
            f'[{audit.AUDIT_MIDDLEWARE_GROUP}] driver'
        )
    if shared.retry < 0 and any(d.startswith('messaging') for d in drivers):
        raise cfg.Error(
            '[audit] enabled: each request would wait without end for a '
            'message bus that is away: set [oslo_messaging_notifications] '
            'retry'
        )
