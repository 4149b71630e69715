# SPDX-License-Identifier: Apache-2.0
"""``OpenStack-API-Version: reservation 1.0``: there is exactly one."""

import microversion_parse

from blazar_sched.service.api import errors

SERVICE_TYPE = 'reservation'
# From the oldest to the newest.
VERSIONS = ('1.0',)
HEADER = 'OpenStack-API-Version'


class Microversion:
    """WSGI layer: refuses versions that are not there, says which it was."""

    def __init__(self, application) -> None:
        self._application = application

    def __call__(self, environ, start_response):
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
                406, f'{HEADER}: only {", ".join(VERSIONS)} is available'
            )
            return refusal(environ, start_response)

        def start(status, headers, exc_info=None):
            said = [(HEADER, f'{SERVICE_TYPE} {version}'), ('Vary', HEADER)]
            return start_response(status, [*headers, *said], exc_info)

        return self._application(environ, start)
