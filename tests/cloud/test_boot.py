# SPDX-License-Identifier: Apache-2.0
"""Boots with the filters in nova-scheduler."""

import datetime

from tests.cloud import person

HOUR = datetime.timedelta(hours=1)


def test_a_window_is_for_its_project_and_for_servers_that_end_before_it(
    demo, alt, register, description
):
    # All hosts are reserved: a refused server has no other host.
    names = description['hosts']
    for name in names:
        register(name)
    wanted = person.hosts(len(names))
    lease = demo.wait_for(demo.book(wanted), 'ACTIVE')
    [reservation] = lease['reservations']
    demo.boot('mine', reservation=reservation['id'])
    assert alt.finds_no_host('theirs', reservation=reservation['id'])
    assert demo.finds_no_host('without a hint')
    demo.end(lease)

    [reservation] = demo.book(wanted, start=HOUR)['reservations']
    assert demo.finds_no_host('early', reservation=reservation['id'])
    assert alt.finds_no_host('endless')
    assert alt.finds_no_host('long', lifetime='2h')
    alt.boot('short', lifetime='30m')
