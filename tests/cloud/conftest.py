# SPDX-License-Identifier: Apache-2.0
"""A real cloud, created by `make test-cloud`.

The tests share the cloud and leave it empty, as they found it.
"""

import collections
import datetime
import json
import os
import pathlib
import uuid

import oslo_messaging
import pytest

from blazar_sched.conf import service as service_conf
from tests.cloud import __main__ as main
from tests.cloud import account
from tests.cloud import person
from tests.cloud import polling
from tests.cloud import site


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(pathlib.Path(__file__).parent):
            item.add_marker('cloud')
            if main.VARIABLE not in os.environ:
                item.add_marker(
                    pytest.mark.skip(
                        f'{main.VARIABLE} is not set: see `make test-cloud`'
                    )
                )


@pytest.fixture(scope='session')
def description():
    """The description that `python -m tests.cloud` makes of the cloud."""
    return json.loads(os.environ[main.VARIABLE])


@pytest.fixture(scope='session')
def new_person(description):
    """new_person(user, project) -> a Person."""
    return lambda user, project: person.Person(
        description['auth_url'], user, project
    )


@pytest.fixture(scope='session')
def admin(new_person):
    return new_person('admin', 'admin')


@pytest.fixture(scope='session')
def demo(new_person):
    return new_person('demo', 'demo')


@pytest.fixture(scope='session')
def alt(new_person):
    return new_person('alt', 'alt')


@pytest.fixture
def new_user(admin, demo, new_person):
    """new_user(role) -> a Person of a user with a role in project demo."""
    identity, users = admin.sdk.identity, []

    def new_user(role):
        users.append(identity.create_user(
            name=f'{role}-{uuid.uuid4()}', password=site.PASSWORD,
            domain_id='default',
        ))
        identity.assign_project_role_to_user(
            demo.project_id, users[-1], identity.find_role(role)
        )
        return new_person(users[-1].name, 'demo')

    yield new_user
    for user in users:
        identity.delete_user(user, ignore_missing=True)


@pytest.fixture(autouse=True)
def empty(admin):
    yield
    account.clear(admin)


@pytest.fixture
def register(admin):
    """register('compute-1', extra='…') registers a host; returns it."""

    def register(name, **settings):
        # From version 1.1 on a host has fields that Blazar's hosts lack.
        return admin.create('os-hosts', '1.1', name=name, **settings)

    return register


@pytest.fixture
def host_of(admin):
    """host_of(lease) -> the ids of the hosts of a lease.

    The hosts that the lease has lost are left out.
    """

    def host_of(lease):
        answer = admin.get(f'os-hosts/allocations?lease_id={lease["id"]}')
        now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
        return [
            host['resource_id']
            for host in answer['allocations']
            if any(
                datetime.datetime.fromisoformat(each['end_date']) > now
                for each in host['reservations']
            )
        ]

    return host_of


@pytest.fixture
def nova(admin):
    """Nova, as an administrator."""
    return account.Nova(admin)


@pytest.fixture
def placement(admin):
    """Placement, as an administrator."""
    return account.Placement(admin)


@pytest.fixture(scope='session')
def notified(description):
    """notified(event_type) -> the payloads of blazar-sched's notifications."""
    conf = service_conf.load(files=[])
    conf.set_override('transport_url', description['bus'])
    payloads = collections.defaultdict(list)

    class Endpoint:
        def info(self, ctxt, publisher_id, event_type, payload, metadata):
            payloads[event_type].append(payload)

    listener = oslo_messaging.get_notification_listener(
        oslo_messaging.get_notification_transport(conf),
        [oslo_messaging.Target(topic='notifications')], [Endpoint()],
        executor='threading',
    )
    listener.start()
    yield payloads.__getitem__
    listener.stop()
    listener.wait()


@pytest.fixture(scope='session')
def until():
    return polling.until
