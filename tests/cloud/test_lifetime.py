# SPDX-License-Identifier: Apache-2.0
"""Servers whose hints create their leases."""

import pytest

LEASE = ('reservation', 'lease')


@pytest.mark.row('C31', 'C43', 'F52')
def test_a_server_with_a_lifetime_has_a_lease_that_ends_it(
    demo, alt, register, description, nova, until
):
    for name in description['hosts']:
        register(name)
    server = demo.boot(
        'mine', lifetime='1h', lease_name='short', lease_on_end='snapshot'
    )
    [lease] = until(lambda: demo.get('leases')['leases'])
    [reservation] = lease['reservations']
    assert reservation['instance_id'] == server['id']
    [listed] = demo.openstack(*LEASE, 'list')
    assert (listed['id'], listed['name']) == (lease['id'], 'short')
    shown = demo.openstack(*LEASE, 'show', 'short')
    assert 'instance:lifetime' in shown['reservations']
    assert alt.get('leases')['leases'] == []

    demo.end(lease)
    assert nova.status_of(server) is None
    # The service makes the image as an admin; the owner can delete the image.
    image = until(lambda: demo.sdk.image.find_image('lifetime_mine'))
    assert image.owner_id == demo.project_id
    demo.sdk.image.delete_image(image)
