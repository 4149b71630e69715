# SPDX-License-Identifier: Apache-2.0
"""A WSGI filter for nova-api that checks and completes the hints of a boot.

The scheduler hints say when the server ends. In api-paste.ini::

    [filter:blazar_sched]
    paste.filter_factory = blazar_sched.hooks.middleware:factory

and ``blazar_sched`` after ``keystonecontext`` in each pipeline.
"""

from collections.abc import Callable
from collections.abc import Iterable
import json
import re
import time
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging
import webob

from blazar_sched.conf import scheduler
from blazar_sched.domain import exception
from blazar_sched.hooks import hints
from blazar_sched.replica import limited_log

LOG = logging.getLogger(__name__)
CONF = cfg.CONF
scheduler.register(CONF)

Environ = dict[str, Any]
Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]

# Matches as Nova's routes match the path after the version: also with a line
# feed at the end.
_BOOT = re.compile(r'(/[0-9a-f-]+)?/(servers|os-volumes_boot)$')
# Nova uses the first key that is present.
_KEYS = ('os:scheduler_hints', 'OS-SCH-HNT:scheduler_hints')

failure = limited_log.LimitedLog(LOG)


class Middleware:
    """A WSGI filter that answers 400 to bad hints, and completes other hints.

    All other requests pass unchanged; so does a request for which the filter
    fails. The filter has no state and calls no service.
    """

    def __init__(
        self, application: Application, clock: Callable[[], float] = time.time
    ) -> None:
        self._application = application
        self._clock = clock

    def __call__(
        self, environ: Environ, start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        if environ['REQUEST_METHOD'] == 'POST' and _BOOT.match(
            environ.get('PATH_INFO', '')
        ):
            request = webob.Request(environ)
            # A body that is too large or incomplete raises here instead of
            # later.
            body = request.body
            try:
                completed = self._completed(body, _project_id(environ))
            except exception.InvalidInput as e:
                refused: Iterable[bytes] = _refusal(e)(environ, start_response)
                return refused
            except Exception as e:
                failure.report(
                    'Scheduler hints are not checked: '
                    f'{type(e).__name__}: {e}',
                    trace=True,
                )
            else:
                if completed is not None:
                    request.body = completed
        return self._application(environ, start_response)

    def _completed(self, body: bytes, project_id: str | None) -> bytes | None:
        """Return the body with the hints to add; None to keep the body.

        :raises InvalidInput: naming the hint that is wrong
        """
        try:
            said = json.loads(body.decode())
        except (ValueError, RecursionError):
            # Nova reports what is wrong with the body, here and below.
            return None
        if not isinstance(said, dict):
            return None
        key = next((key for key in _KEYS if key in said), _KEYS[0])
        given = said.get(key, {})
        if not isinstance(given, dict):
            return None
        default = scheduler.default_lifetime(CONF.blazar_sched, project_id)
        added = hints.complete(given, int(self._clock()), default)
        if not added:
            return None
        return json.dumps({**said, key: {**given, **added}}).encode()


def factory(
    global_conf: dict[str, str], **local_conf: str
) -> Callable[[Application], Middleware]:
    """Return the filter that PasteDeploy puts before an application.

    :raises InvalidInput: if a policy or a duration cannot be read
    :raises ValueError: if another option has no usable value
    """
    scheduler.check(CONF)
    return Middleware


def _project_id(environ: Environ) -> str | None:
    return getattr(environ.get('nova.context'), 'project_id', None)


def _refusal(error: exception.InvalidInput) -> webob.Response:
    """Return the response to an error, in the shape of Nova's responses."""
    fault = {'badRequest': {'code': error.status, 'message': str(error)}}
    return webob.Response(json_body=fault, status=error.status)
