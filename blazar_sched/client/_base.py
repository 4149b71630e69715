# SPDX-License-Identifier: Apache-2.0
"""What all resources of the reservation service have in common."""

from typing import Any

from openstack import resource


class Resource(resource.Resource):
    """A resource of the newest version of the API that the service has."""

    _max_microversion = '1.2'

    def _prepare_request(self, **options: Any) -> resource._Request:
        # The body of a request has no envelope, as in Blazar.
        return super()._prepare_request(**{**options, 'prepend_key': False})
