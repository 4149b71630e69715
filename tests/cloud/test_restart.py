# SPDX-License-Identifier: Apache-2.0
"""A manager that is killed, and started again."""

import datetime
import os
import pathlib
import signal

import pytest

from tests.cloud import person


def responds(who):
    """Tell whether a manager responds, which may take some time to start."""
    try:
        who.get('leases')
    except person.Refused:
        return False
    return True


@pytest.mark.row('C6', 'F62')
def test_a_lease_ends_though_its_manager_is_killed(
    demo, register, description, nova, until
):
    register('compute-1')
    lease = demo.wait_for(
        demo.book(person.hosts(), length=datetime.timedelta(seconds=45)),
        'ACTIVE',
    )
    [reservation] = lease['reservations']
    mine = demo.boot('mine', reservation=reservation['id'])

    file = pathlib.Path(description['folder'], 'manager.pid')
    killed = file.read_text()
    os.kill(int(killed), signal.SIGKILL)
    until(lambda: file.read_text() not in ('', killed))
    until(lambda: responds(demo))

    demo.wait_for(lease, 'TERMINATED')
    assert nova.status_of(mine) is None
