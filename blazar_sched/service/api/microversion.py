# SPDX-License-Identifier: Apache-2.0
"""``OpenStack-API-Version: reservation 1.2``: what each version has.

- 1.0 is Blazar's, and what a request without the header gets.
- 1.1 has what Blazar has no place for: a lease without an end, who else may
  use a reservation (``projects``), what becomes of its servers (``on_end``),
  its hosts and what of it is still unused (``remaining``), servers that need
  not name it (``magnetic``), the flavor that was asked for
  (``source_flavor_id``), ``vacate_hosts`` among the events, reservations that
  come and go in an update, and times with their zone.
- 1.2 looks ahead: how much there is in a window (``/v1/capacity``), what a
  request would be answered with (``dry_run``), and in a refusal for want of
  room what there would be room for (``offer``). Reservations of instances
  take ``before_end`` too, which knows more actions, and those on hosts say why
  it was not done (``before_end_failed``).
"""

from collections.abc import Callable
from collections.abc import Iterable
from typing import Any
from wsgiref import types as wsgi

import microversion_parse

from blazar_sched.service.api import errors

SERVICE_TYPE = 'reservation'
# The versions from the oldest to the newest.
VERSIONS = ('1.0', '1.1', '1.2')
KNOWN = V1_0, V1_1, V1_2 = tuple(
    map(microversion_parse.parse_version_string, VERSIONS)
)
HEADER = 'OpenStack-API-Version'
# The key of the request's version in the WSGI environ.
VERSION = 'blazar_sched.api_version'


class Microversion:
    """A WSGI layer that reads the requested version and reports it."""

    def __init__(self, application: wsgi.WSGIApplication) -> None:
        self._application = application

    def __call__(
        self, environ: wsgi.WSGIEnvironment, start_response: wsgi.StartResponse
    ) -> Iterable[bytes]:
        try:
            version = microversion_parse.extract_version(
                environ, SERVICE_TYPE, VERSIONS
            )
        except TypeError:
            refusal = errors.answer(
                400, f'{HEADER} must be like "{SERVICE_TYPE} {VERSIONS[-1]}"'
            )
            return refusal(environ, start_response)
        except ValueError:
            refusal = errors.answer(
                406, f'{HEADER}: there are {", ".join(VERSIONS)}'
            )
            return refusal(environ, start_response)
        environ[VERSION] = version

        def start(
            status: str,
            headers: list[tuple[str, str]],
            exc_info: Any = None,
        ) -> Callable[[bytes], object]:
            said = [(HEADER, f'{SERVICE_TYPE} {version}'), ('Vary', HEADER)]
            return start_response(status, [*headers, *said], exc_info)

        return self._application(environ, start)
