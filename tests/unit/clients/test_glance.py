# SPDX-License-Identifier: Apache-2.0
"""Images of servers, and their owners."""

import pytest

from blazar_sched.domain import exception
from blazar_sched.service.clients.glance import Glance
from blazar_sched.service.clients.nova import Nova
from blazar_sched.service.clients.nova import Server
from tests.standins.rest import answer
from tests.standins.rest import Service

IMAGE = 'i1'


class Images:
    """Glance with one image, which Nova has made as an administrator."""

    def __init__(self):
        self.owner = 'service'
        self.status = 'SAVING'
        self.refusal = None
        self.api = Service(
            ('GET', f'/v2/images/{IMAGE}', self._show),
            ('PATCH', f'/v2/images/{IMAGE}', self._change),
        )
        self.compute = Service(('GET', '/images/detail', self._list))

    def _show(self):
        return answer(200, {'id': IMAGE, 'owner': self.owner})

    def _change(self, changes):
        if self.refusal is not None:
            return answer(self.refusal)
        [change] = changes
        assert (change['op'], change['path']) == ('replace', '/owner')
        self.owner = change['value']
        return answer(200, {})

    def _list(self, server, name):
        image = {
            'id': IMAGE, 'status': self.status,
            'metadata': {'instance_uuid': server},
        }
        return answer(200, {'images': [image]})


@pytest.fixture
def cloud():
    return Images()


@pytest.fixture
def make(cloud):
    """make() requests an image of a server of project alt."""
    nova = Nova(cloud.compute, Glance(cloud.api))
    server = Server('s1', 'a', 'alt', {}, 0, None, False)
    return lambda: nova.create_image(server, 'name', {})


def test_an_image_of_an_admin_becomes_the_servers_projects(cloud, make):
    assert not make()
    assert cloud.owner == 'service'
    cloud.status = 'ACTIVE'
    assert make()
    assert cloud.owner == 'alt'
    cloud.api.asked.clear()
    assert make()
    assert [method for method, _ in cloud.api.asked] == ['GET']


def test_until_it_is_given_the_image_is_not_complete(cloud, make):
    """The server is not deleted before the image has its owner."""
    cloud.status = 'ACTIVE'
    cloud.refusal = 500
    with pytest.raises(exception.Unavailable):
        make()
    cloud.refusal = None
    assert make()
    assert cloud.owner == 'alt'


def test_a_policy_that_forbids_it_stops_nothing(cloud, make, caplog):
    cloud.status = 'ACTIVE'
    cloud.refusal = 403
    assert make()
    assert 'Image i1 cannot be given to project alt' in caplog.text
