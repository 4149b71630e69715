# SPDX-License-Identifier: Apache-2.0
"""Client of Glance, as far as images of servers need it."""

import functools
from typing import TYPE_CHECKING

from keystoneauth1 import adapter
from oslo_log import log

from blazar_sched.service.clients import rest

if TYPE_CHECKING:
    from openstack.image.v2._proxy import Proxy

LOG = log.getLogger(__name__)

_FORBIDDEN = 403
_NOT_FOUND = 404


class Glance:
    """A client of the image API.

    :param api: a keystoneauth adapter for the image service of an admin; None
        where no cloud is configured
    """

    def __init__(self, api: adapter.Adapter | None) -> None:
        self._api = api

    @functools.cached_property
    def _images(self) -> 'Proxy':
        images: Proxy = rest.connect(self._api, 'image')
        return images

    def give_image(self, image_id: str, project_id: str) -> None:
        """Make a project the owner of an image, unless it already is.

        The image counts in the quota of its owner, and only the owner may
        delete the image. A refusal by Glance is logged.

        :raises Unavailable: if Glance does not answer
        """
        with rest.tolerating(_NOT_FOUND):
            image = self._images.get_image(image_id)
            with rest.tolerating(_FORBIDDEN) as refusals:
                # Nothing is sent if the project is the owner.
                self._images.update_image(image, owner_id=project_id)
            for refusal in refusals:
                LOG.warning(
                    'Image %s cannot be given to project %s: %s', image_id,
                    project_id, refusal.text[:200],
                )
