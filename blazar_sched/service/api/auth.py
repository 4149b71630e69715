# SPDX-License-Identifier: Apache-2.0
"""WSGI layers that identify the caller; one of the layers is configured.

Each layer puts an oslo.context under CONTEXT into the WSGI environ. Neither
layer trusts identity headers that the client itself has sent.
"""

from collections.abc import Callable
from collections.abc import Iterable
import ipaddress
import re
from urllib import parse
from wsgiref import types as wsgi

from keystoneauth1 import exceptions as keystone_exceptions
from keystonemiddleware import auth_token
from oslo_config import cfg
from oslo_context import context
from oslo_log import log as logging
import webob.exc

from blazar_sched.domain import exception
from blazar_sched.replica import limited_log
from blazar_sched.service import parts
from blazar_sched.service.api import errors
from blazar_sched.service.api import request_id
from blazar_sched.service.api import trust
from blazar_sched.service.api.microversion import SERVICE_TYPE
from blazar_sched.service.clients import keystone as keystone_client

LOG = logging.getLogger(__name__)

CONTEXT = 'blazar_sched.context'
# The key of what a part has for requests without a token.
PUBLIC = 'blazar_sched.public'
# The key of a function in the environ that tells whether a project exists.
HAS_PROJECT = 'blazar_sched.has_project'
# The roles that Keystone's admin has by implication.
ADMIN_ROLES = ['admin', 'member', 'reader']
MEMBER_ROLES = ['member', 'reader']
# The versions are public, as everywhere in OpenStack, and so is the OpenAPI
# document of each version.
OPEN_PATHS = ('/', '/versions', '/v1', '/openapi')

_HEADERS_OF_OTHERS = {'Forwarded', 'Via', 'X-Real-Ip'}
_NAME = re.compile(r'[A-Za-z0-9._@-]{1,64}')


class _Open:
    """Tells which requests need no token.

    A request of a path that a part opens gets a context without a project and
    without roles.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._opened: dict[str, object] = {}
        for opened in parts.each('api', 'opened', parts.running(conf)):
            self._opened |= opened(conf)

    def __call__(self, environ: wsgi.WSGIEnvironment) -> bool:
        path = environ['PATH_INFO']
        if path in self._opened and 'HTTP_X_AUTH_TOKEN' not in environ:
            environ[PUBLIC] = self._opened[path]
            environ[CONTEXT] = context.RequestContext(
                user_id='', project_id='',
                request_id=environ[request_id.LOCAL],
                global_request_id=environ.get(request_id.GLOBAL),
            )
            return True
        return path in OPEN_PATHS


class NoAuth:
    """A layer that trusts the token: ``user:project``, or ``user`` for both.

    The user ``admin`` has the admin role. The layer is only for callers on the
    same machine: it is served on loopback addresses only, see `server`, and
    refuses requests that a proxy, or a web page other than the API's own, has
    sent on behalf of others.
    """

    def __init__(
        self, application: wsgi.WSGIApplication, conf: cfg.ConfigOpts
    ) -> None:
        self._application = application
        self._hosts = {'localhost', conf.api.host.lower()}
        self._is_open = _Open(conf)

    def __call__(
        self, environ: wsgi.WSGIEnvironment, start_response: wsgi.StartResponse
    ) -> Iterable[bytes]:
        sign = (
            _foreign_header(environ) or self._other_host(environ)
            or _other_origin(environ)
        )
        if sign is not None:
            refusal = errors.answer(
                403,
                'with [api] auth_strategy = noauth only programs on this '
                f'machine are answered, not a request with the header {sign}',
            )
            return refusal(environ, start_response)
        if self._is_open(environ):
            return self._application(environ, start_response)
        token = environ.get('HTTP_X_AUTH_TOKEN', '')
        user, _, project = token.partition(':')
        project = project or user
        if not (_NAME.fullmatch(user) and _NAME.fullmatch(project)):
            refusal = errors.answer(
                401, 'the token must have the form user:project'
            )
            return refusal(environ, start_response)
        environ[CONTEXT] = context.RequestContext(
            user_id=user, project_id=project,
            roles=ADMIN_ROLES if user == 'admin' else MEMBER_ROLES,
            request_id=environ[request_id.LOCAL],
            global_request_id=environ.get(request_id.GLOBAL),
        )
        return self._application(environ, start_response)

    def _other_host(self, environ: wsgi.WSGIEnvironment) -> str | None:
        """Return 'Host' if the Host header names another machine.

        A web page whose own name resolves to this machine sends such a header.
        """
        try:
            url = parse.urlsplit(f'//{environ.get("HTTP_HOST", "")}')
            host = url.hostname
        except ValueError:
            return 'Host'
        if host is None or host in self._hosts or _is_loopback(host):
            return None
        return 'Host'


def _foreign_header(environ: wsgi.WSGIEnvironment) -> str | None:
    """Return a header that proxies or web pages send, if there is one."""
    for key in environ:
        name = key.removeprefix('HTTP_').replace('_', '-').title()
        if key.startswith('HTTP_') and (
            name in _HEADERS_OF_OTHERS or name.startswith('X-Forwarded')
        ):
            return name
    return None


def _other_origin(environ: wsgi.WSGIEnvironment) -> str | None:
    """Return 'Origin' if a web page that is not this API's sent the request.
    """
    own = f'http://{environ.get("HTTP_HOST")}'
    return 'Origin' if environ.get('HTTP_ORIGIN', own) != own else None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


_LATER = [('Retry-After', str(exception.Unavailable.retry_after))]


class Keystone(auth_token.AuthProtocol):
    """The layer of keystonemiddleware, with errors in the API's envelope."""

    def __init__(
        self, application: wsgi.WSGIApplication, conf: cfg.ConfigOpts
    ) -> None:
        keystone = keystone_client.load(conf)

        def identified(
            environ: wsgi.WSGIEnvironment, start_response: wsgi.StartResponse
        ) -> Iterable[bytes]:
            # The context is sent to the manager without the token.
            ctxt = environ[CONTEXT] = context.RequestContext.from_environ(
                environ, auth_token=None
            )
            environ[HAS_PROJECT] = keystone.has_project
            if conf.api.use_trusts:
                token = environ['keystone.token_auth'].user.auth_token
                environ[trust.TRUSTOR] = trust.Trustor(keystone, token, ctxt)
            return application(environ, start_response)

        self._open = application
        self._is_open = _Open(conf)
        self._failure_log = limited_log.LimitedLog(LOG)
        super().__init__(identified, {
            'oslo_config_config': conf,
            # The service that the access rules of application credentials
            # name.
            'service_type': SERVICE_TYPE,
        })

    def __call__(
        self, environ: wsgi.WSGIEnvironment, start_response: wsgi.StartResponse
    ) -> Iterable[bytes]:
        if self._is_open(environ):
            return self._open(environ, start_response)
        answer: Iterable[bytes] = super().__call__(environ, start_response)
        return answer

    def process_request(self, request: webob.Request) -> webob.Response | None:
        try:
            return super().process_request(request)
        except webob.exc.HTTPError as e:
            headers = [h for h in e.headerlist if h[0] == 'WWW-Authenticate']
            if e.status_int == 503:
                headers += _LATER
            refusal = errors.answer(e.status_int, e.title, headers)
        except keystone_exceptions.ClientException as e:
            self._failure_log.report(
                'Tokens cannot be validated with the credentials of '
                f'[keystone_authtoken]: {e}'
            )
            refusal = errors.answer(
                503, 'Keystone cannot validate the token now', _LATER
            )
        return request.get_response(refusal)


LAYERS: dict[str, Callable[..., wsgi.WSGIApplication]] = {
    'noauth': NoAuth,
    'keystone': Keystone,
}
