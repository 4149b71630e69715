# SPDX-License-Identifier: Apache-2.0
"""Client of Glance, as far as images of servers need it."""

from keystoneauth1 import adapter
from oslo_log import log

from blazar_sched.service.clients import rest

LOG = log.getLogger(__name__)

# The content type of changes of an image in Glance.
_PATCH = {'Content-Type': 'application/openstack-images-v2.1-json-patch'}
_FORBIDDEN = 403
_NOT_FOUND = 404


class Glance:
    """A client of the image API.

    :param api: a keystoneauth adapter for the image service of an admin; None
        where no cloud is configured
    """

    def __init__(self, api: adapter.Adapter | None) -> None:
        self._rest = rest.Rest('image', api, None)

    def give_image(self, image_id: str, project_id: str) -> None:
        """Make a project the owner of an image, unless it already is.

        The image counts in the quota of its owner, and only the owner may
        delete the image. A refusal by Glance is logged.

        :raises Unavailable: if Glance does not answer
        """
        url = f'/images/{image_id}'
        answer = self._rest.request('GET', url, also=(_NOT_FOUND,))
        if (
            answer.status_code == _NOT_FOUND
            or rest.document(answer).get('owner') == project_id
        ):
            return
        answer = self._rest.request(
            'PATCH',
            url,
            json=[{'op': 'replace', 'path': '/owner', 'value': project_id}],
            also=(_FORBIDDEN, _NOT_FOUND),
            headers=_PATCH,
        )
        if answer.status_code == _FORBIDDEN:
            LOG.warning(
                'Image %s cannot be given to project %s: %s',
                image_id, project_id, answer.text[:200],
            )
