# SPDX-License-Identifier: Apache-2.0
"""WSGI layers that find out who calls; one of them is in front.

Each puts an oslo.context under CONTEXT into the WSGI environ. What the
client itself says in identity headers is believed by neither.
"""

import re

from keystoneauth1 import exceptions as keystone_exceptions
from keystonemiddleware import auth_token
from oslo_config import cfg
from oslo_context import context
from oslo_log import log as logging
import webob.exc

from blazar_sched.service.api import errors
from blazar_sched.service.api import request_id
from blazar_sched.service.api import trust
from blazar_sched.service.clients import keystone as keystone_

LOG = logging.getLogger(__name__)

CONTEXT = 'blazar_sched.context'
# Keystone's admin has these three, by implication.
ADMIN_ROLES = ['admin', 'member', 'reader']
MEMBER_ROLES = ['member', 'reader']
# Anyone may ask which versions there are, as everywhere in OpenStack, and
# what they have.
OPEN_PATHS = (
    '', '/', '/.json', '/versions', '/versions.json', '/openapi',
    '/openapi.json',
)

_NAME = re.compile(r'[A-Za-z0-9._@-]{1,64}')


class NoAuth:
    """Believes the token: ``user:project``, or ``user`` for both in one.

    The user ``admin`` has the role, and is who calls without a token. For
    loopback addresses only, see `server`.
    """

    def __init__(self, application, conf: cfg.ConfigOpts) -> None:
        self._application = application

    def __call__(self, environ, start_response):
        token = environ.get('HTTP_X_AUTH_TOKEN', 'admin')
        user, _, project = token.partition(':')
        project = project or user
        if not (_NAME.fullmatch(user) and _NAME.fullmatch(project)):
            refusal = errors.answer(401, 'the token must be user:project')
            return refusal(environ, start_response)
        environ[CONTEXT] = context.RequestContext(
            user_id=user,
            project_id=project,
            roles=ADMIN_ROLES if user == 'admin' else MEMBER_ROLES,
            request_id=environ[request_id.LOCAL],
            global_request_id=environ.get(request_id.GLOBAL),
        )
        return self._application(environ, start_response)


class Keystone(auth_token.AuthProtocol):
    """Keystone's own layer, refusing in our envelope."""

    def __init__(self, application, conf: cfg.ConfigOpts) -> None:
        keystone = keystone_.load(conf) if conf.api.use_trusts else None

        def identified(environ, start_response):
            # The manager is told without the token.
            ctxt = environ[CONTEXT] = context.RequestContext.from_environ(
                environ, auth_token=None
            )
            if keystone is not None:
                token = environ['keystone.token_auth'].user.auth_token
                environ[trust.TRUSTOR] = trust.Trustor(keystone, token, ctxt)
            return application(environ, start_response)

        self._open = application
        super().__init__(identified, {'oslo_config_config': conf})

    def __call__(self, environ, start_response):
        if environ['PATH_INFO'] in OPEN_PATHS:
            return self._open(environ, start_response)
        return super().__call__(environ, start_response)

    def process_request(self, request):
        try:
            return super().process_request(request)
        except webob.exc.HTTPError as e:
            headers = [h for h in e.headerlist if h[0] == 'WWW-Authenticate']
            refusal = errors.answer(e.status_int, e.title, headers)
        except keystone_exceptions.ClientException:
            LOG.exception('Keystone cannot be asked')
            refusal = errors.answer(503, 'Keystone cannot be asked')
        return request.get_response(refusal)


LAYERS = {'noauth': NoAuth, 'keystone': Keystone}
