# SPDX-License-Identifier: Apache-2.0
"""Versions of the API, selected by ``OpenStack-API-Version: reservation 1.2``.

1.0 is Blazar's API, and the version of a request without the header.

1.1 adds what Blazar does not have:

- leases without an end, ``duration`` in place of an end, leases that begin at
  the first start with room (``latest_start_date``), updates that add or remove
  reservations, updates that prolong a lease as far as possible
  (``as_far_as_possible``), and how far that is
  (``/v1/leases/{lease_id}/extension``),
- further projects that may use a reservation (``projects``), what happens to
  the servers of a reservation at its end (``on_end``), servers that use a
  reservation without a hint (``magnetic``), ``before_end`` for reservations of
  instances and with further actions, ``on_start``, and why the action was not
  done (``before_end_failed``, ``on_start_failed``),
- leases of the first of several lists of reservations that has room
  (``alternatives``), reservations that name ``hosts`` to choose from, and
  ephemeral disk and extra specs of the flavor of a ``virtual:instance``
  (``ephemeral_gb``, ``extra_specs``),
- the hosts of a reservation (``hosts``), the number of servers that a
  reservation still takes (``remaining``), the reserved flavor
  (``source_flavor_id``), and ``vacate_hosts`` events,
- dry runs (``dry_run``), and what there is room for and what is in the way if
  a request is refused for lack of room (``offer``, ``in_the_way``),
- the search for windows in which a lease would find room, and offers that are
  held (``/v1/offers``), series of leases (``/v1/series``), and lease requests,
  which wait until a lease finds room (``/v1/requests``),
- the capacity of a window (``/v1/capacity``), the timeline of hosts
  (``/v1/timeline``), the properties that requirements can name
  (``/v1/properties``), the flavors that reservations can name
  (``/v1/flavors``), the products that the operator publishes
  (``/v1/products``) and reservations of a product, and the limits
  (``/v1/limits``) and the usage (``/v1/reports/usage``) of the project, for
  every user,
- maintenances (``/v1/maintenances``), and further settings of hosts, such as
  ``spare``,
- times with a time zone.

1.2 adds the approval of held offers above a limit (``needs_approval``,
``PUT /v1/offers/{offer_id}``), who has approved an offer or a lease
(``approved_by``), and what was refused in the report of usage (``refused``).
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
_IN_ENVIRON = 'HTTP_OPENSTACK_API_VERSION'
# The key of the request's version in the WSGI environ.
VERSION = 'blazar_sched.api_version'

# Every response depends on the header, a refusal of the version too.
_VARY = ('Vary', HEADER)


def needed(what: str, version: microversion_parse.Version) -> str:
    """Return the refusal of what only newer versions have."""
    return f'{what} needs {HEADER}: {SERVICE_TYPE} {version}'


class Microversion:
    """A WSGI layer that reads the requested version and reports it."""

    def __init__(self, application: wsgi.WSGIApplication) -> None:
        self._application = application

    def __call__(
        self, environ: wsgi.WSGIEnvironment, start_response: wsgi.StartResponse
    ) -> Iterable[bytes]:
        try:
            sent = environ.get(_IN_ENVIRON, '').split(',')
            if any(len(each.split()) == 1 for each in sent):
                # A version of no service: microversion_parse ignores it.
                raise TypeError
            version = microversion_parse.extract_version(
                environ, SERVICE_TYPE, VERSIONS
            )
        except TypeError:
            refusal = errors.answer(
                400,
                f'{HEADER} must have the form "{SERVICE_TYPE} {VERSIONS[-1]}"',
                [_VARY],
            )
            return refusal(environ, start_response)
        except ValueError:
            refusal = errors.answer(
                406, f'{HEADER}: the versions are {", ".join(VERSIONS)}',
                [_VARY],
            )
            return refusal(environ, start_response)
        environ[VERSION] = version

        def start(
            status: str, headers: list[tuple[str, str]], exc_info: Any = None
        ) -> Callable[[bytes], object]:
            said = [(HEADER, f'{SERVICE_TYPE} {version}'), _VARY]
            return start_response(status, [*headers, *said], exc_info)

        return self._application(environ, start)
