# SPDX-License-Identifier: Apache-2.0
"""The envelope of every error, of the API and of its layers.

``{"error_code": 404, "error_message": "…", "error_name": "LeaseNotFound"}``:
the code is the HTTP status, the name is a class of domain.exception, one of
NAMES, or the class of an error that a filter or driver of another package has
raised. The text of an exception is included only if it was written for
callers.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import json
from typing import Any
from wsgiref import types as wsgi

import falcon
from oslo_log import log as logging

from blazar_sched.domain import exception
from blazar_sched.service.api import request_id

LOG = logging.getLogger(__name__)

App = falcon.App[falcon.Request, falcon.Response]

# The names of the API's own errors, by status. Clients test these names: never
# change a name, and never give a name a second meaning.
NAMES = {
    # The body, a header or a parameter cannot be accepted as it is.
    400: exception.InvalidInput.__name__,
    # No token, or one that is not valid.
    401: 'Unauthorized',
    # The caller's roles do not allow the request.
    403: exception.NotAuthorized.__name__,
    # Nothing is at this path.
    404: exception.NotFound.__name__,
    # Something is at this path, but not for this method.
    405: 'MethodNotAllowed',
    # The client does not accept JSON, or asks for another API version.
    406: 'NotAcceptable',
    # The body is longer than [api] max_request_body_size.
    413: 'RequestTooLarge',
    # The body is declared to be something else than JSON.
    415: 'UnsupportedMediaType',
    # The headers are longer than the server reads.
    431: 'HeadersTooLarge',
    # A fault of this service; its log has the details.
    500: 'InternalError',
    # The same request may work later.
    503: exception.Unavailable.__name__,
}
# The key of the WSGI environ with the reason of a refusal, for the log.
REASON = 'blazar_sched.refusal'
FAULT = 'unexpected error; the log of the service has details of this request'


def envelope(
    status: int, message: str, name: str | None = None
) -> dict[str, Any]:
    """Build the body of an error, named after its status by default."""
    fallback = NAMES[400 if status < 500 else 500]
    return {
        'error_code': status,
        'error_message': message,
        'error_name': name or NAMES.get(status, fallback),
    }


def answer(
    status: int, message: str, headers: Iterable[tuple[str, str]] = ()
) -> wsgi.WSGIApplication:
    """Return a WSGI application that always responds with this error."""
    body = json.dumps(envelope(status, message)).encode()

    def application(
        environ: wsgi.WSGIEnvironment, start_response: wsgi.StartResponse
    ) -> Iterable[bytes]:
        start_response(
            falcon.code_to_http_status(status),
            [
                ('Content-Type', falcon.MEDIA_JSON),
                ('Content-Length', str(len(body))),
                *headers,
            ],
        )
        return [body]

    return application


class Faults:
    """A WSGI layer that answers an unhandled exception below it with 500."""

    def __init__(self, application: wsgi.WSGIApplication) -> None:
        self._application = application

    def __call__(
        self, environ: wsgi.WSGIEnvironment, start_response: wsgi.StartResponse
    ) -> Iterable[bytes]:
        try:
            return self._application(environ, start_response)
        except Exception:
            LOG.exception(
                '%s %s %r failed', environ[request_id.LOCAL],
                environ['REQUEST_METHOD'], environ['PATH_INFO'],
            )
            return answer(500, FAULT)(environ, start_response)


def register(app: App) -> None:
    """Make `app` answer every error in the envelope."""
    app.set_error_serializer(_serialize)
    app.add_error_handler(exception.BlazarSchedError, refuse)
    app.add_error_handler(RecursionError, _too_deep)
    app.add_error_handler(Exception, _escape)


def _serialize(
    req: falcon.Request, resp: falcon.Response, error: falcon.HTTPError
) -> None:
    message = error.description or f'{error.title}: {req.method} {req.path}'
    resp.content_type = falcon.MEDIA_JSON
    resp.media = envelope(error.status_code, message)
    req.env[REASON] = message


def refuse(
    req: falcon.Request, resp: falcon.Response,
    error: exception.BlazarSchedError, params: Mapping[str, Any],
    status: int | None = None,
) -> None:
    """Respond with the error in the envelope: an error handler of Falcon.

    :param status: the status in place of that of the error
    """
    resp.status = status or error.status
    resp.media = envelope(resp.status, _message(error), error.name)
    req.env[REASON] = f'{error.name}: {_message(error)}'
    if isinstance(error, exception.Unavailable):
        resp.set_header('Retry-After', str(error.retry_after))
        if error.detail:
            LOG.warning('%s %s is refused: %s', req.method, req.path, error)


def _too_deep(
    req: falcon.Request, resp: falcon.Response, error: RecursionError,
    params: Mapping[str, Any],
) -> None:
    raise falcon.HTTPBadRequest(
        description='the request body is nested too deeply'
    )


def _escape(
    req: falcon.Request, resp: falcon.Response, error: Exception,
    params: Mapping[str, Any],
) -> None:
    """Raise the error again for Faults, which handles every layer alike."""
    raise error


def _message(error: exception.BlazarSchedError) -> str:
    # Not str(): over RPC, str() has the manager's traceback at its end.
    text = str(error.args[0])
    if error.field is None or text.startswith(error.field):
        return text
    return f'{error.field}: {text}'
