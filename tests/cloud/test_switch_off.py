# SPDX-License-Identifier: Apache-2.0
"""The page about switching the service off, on a cloud of its own."""

import contextlib
import functools
import re
import shlex
import shutil
import time

import pytest

from tests.cloud import account
from tests.cloud import home
from tests.cloud import person
from tests.cloud import polling
from tests.cloud import seed
from tests.cloud.cloud import Cloud

PAGE = (home.ROOT / 'doc/source/admin/switch_off.rst').read_text()
COMMAND = re.compile(r'^ +[$#] ((?:.*\\\n)*.*)$', re.M)
ON_2 = person.hosts(
    hypervisor_properties='["==", "$hypervisor_hostname", "compute-2"]'
)
HOLDS = 'shared', 'dedicated', 'shared'


@pytest.fixture
def cloud(tmp_path):
    with contextlib.ExitStack() as stack:
        yield Cloud(tmp_path, stack, 3, 'shared')


def follow(line, cloud, admin, objects):
    """Run a command of the page, for each object, if the cloud has it."""
    if line.startswith('openstack'):
        names = re.findall('<(.*?)>', line)
        for values in objects.get(names[-1], ()) if names else [()]:
            words = re.sub('<.*?>', '{}', line).format(*values[-len(names):])
            polling.until(functools.partial(_done, admin, words))
    elif line == 'systemctl restart nova-scheduler nova-api':
        # The cloud has put at the end what the guide adds.
        conf = cloud.site.etc / 'nova.conf'
        conf.write_text(conf.read_text().partition('[filter_scheduler]')[0])
        paste = cloud.site.venv / 'etc/nova/api-paste.ini'
        shutil.copy(paste, cloud.site.etc)
        cloud.processes.end('nova', 'nova-conductor', 'nova-scheduler')
        next(each for each in cloud.services if each.name == 'nova').start()
    elif line.startswith('systemctl disable'):
        cloud.processes.end('api', 'manager')
    elif line == 'systemctl restart nova-compute':
        for each in _children(admin):
            admin.sdk.placement.delete_resource_provider(each)


def _done(admin, words):
    try:
        admin.command(*shlex.split(words)[1:])
    except person.Refused as e:
        if 'event of the lease is in progress' not in str(e):
            raise
        return False
    return True


def _children(admin):
    providers = admin.sdk.placement.resource_providers()
    return [each for each in providers if each.name.startswith('blazar_')]


def _left(admin):
    """Return what is in the cloud because of the service."""
    compute, identity = admin.sdk.compute, admin.sdk.identity
    classes = admin.sdk.placement.resource_classes()
    return [
        *compute.aggregates(), *compute.server_groups(all_projects=True),
        *compute.flavors(is_public=False), *_children(admin),
        *(each for each in classes if 'RESERVATION' in each.name),
        *identity.services(type='reservation'), *identity.users(name='blazar'),
    ]


@pytest.mark.row('F131')
def test_nova_alone_goes_on_with_every_server(cloud):
    url = cloud.describe()['auth_url']
    admin, demo = (person.Person(url, n, n) for n in ('admin', 'demo'))
    polling.until(lambda: admin.reservation.get('/leases').ok)
    hosts = [
        admin.create('os-hosts', '1.1', name=name, hold=hold)
        for name, hold in zip(cloud.site.hosts, HOLDS, strict=True)
    ]
    slots, whole = (
        demo.wait_for(demo.book(asked), 'ACTIVE')['reservations'][0]
        for asked in (person.instances(affinity=False), ON_2)
    )
    kept = demo.boot('kept', slots['id'], group=slots['server_group_id'])
    hinted = demo.boot('hinted', reservation=whole['id'])
    others = [hinted, demo.boot('plain'), demo.boot('ends', lifetime='2d')]
    # Aggregates with the pool, a group, a flavor, providers, and the others.
    assert len(_left(admin)) == 3 + 1 + 1 + 3 + 1 + 2
    endpoints = admin.openstack('endpoint', 'list', '--service', 'reservation')
    objects = {
        'lease': [(each['id'], each['lease_id']) for each in (slots, whole)],
        'server': [('m1.small', kept.id)],
        'host': [(each['id'],) for each in hosts],
        'endpoint': [(each['ID'],) for each in endpoints],
    }

    began = time.monotonic()
    rules = '\n'.join(re.findall('"blazar:.*', PAGE))
    (cloud.site.etc / 'policy.yaml').write_text(rules)
    with pytest.raises(person.Refused, match='403'):
        admin.book(person.hosts())
    for line in COMMAND.findall(PAGE):
        follow(line.replace('\\\n', ''), cloud, admin, objects)
        print(f'{time.monotonic() - began:5.0f} s: {line}')
        servers = admin.sdk.compute.servers(all_projects=True)
        statuses = {each.id: each.status for each in servers}
        assert statuses.pop(kept.id) in ('ACTIVE', 'VERIFY_RESIZE')
        assert statuses == dict.fromkeys((s.id for s in others), 'ACTIVE')
    assert _left(admin) == []

    admin.command(*shlex.split(
        'server create --wait --host compute-2 --flavor m1.tiny --nic none '
        f'--image {seed.IMAGE} anew'
    ))
    nova = account.Nova(admin)
    before = [nova.host_of(server) for server in (kept, hinted)]
    for server in kept, hinted:
        admin.command('server', 'migrate', '--live-migration', server.id)
    polling.until(lambda: nova.host_of(kept) != before[0])
    polling.until(lambda: nova.host_of(hinted) != before[1])
