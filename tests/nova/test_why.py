# SPDX-License-Identifier: Apache-2.0
"""``blazar-sched why``: a query over the bus to nova-scheduler's workers."""

import io

import pytest
import rich.console

from blazar_sched.conf import service as service_conf
from blazar_sched.parts.ops import why
from blazar_sched.replica import wire
from blazar_sched.service.bus import rpc
from blazar_sched.service.bus import schedulers
from blazar_sched.worker import process
from demo.cloud import wait_for

pytestmark = pytest.mark.more
SOON = 900
THEIRS = 'b8a2e1c09f6d4c7f8e7d6c5b4a392817'


@pytest.fixture(scope='module')
def bus():
    conf = service_conf.load(files=[])
    conf.set_override('transport_url', 'fake:/')
    return rpc.transport(conf)


@pytest.fixture
def ask(cloud, bus):
    """Query the decisions on a server until there are some."""
    def ask(server, host=None):
        answers = wait_for(
            'an answer',
            lambda: schedulers.query(
                bus, 1, wire.EXPLAIN_METHOD, instance_uuid=server['id'],
                host=host,
            ),
        )
        return why.in_order(answers)

    return ask


def refused(lab, flavor, hints):
    server = lab.cloud.boot(flavor, hints)
    assert server['status'] == 'ERROR'
    return server


def hosts(decisions):
    """Return the reason for each host, by name; each is refused once."""
    found = [each for told in decisions for each in told['hosts'].items()]
    assert len(found) == len(dict(found))
    return dict(found)


@pytest.mark.row('F91')
def test_four_hosts_have_four_reasons(lab, ask):
    lab.register('c1', 'c3', 'c4')
    lab.register('c2', hold='dedicated')
    lab.reserve('c1', start=SOON, project_id=THEIRS)
    lab.reserve('c3', start=SOON, vcpus=6, project_id=THEIRS)
    lab.reserve('c4', start=-60, project_id=THEIRS)
    server = refused(lab, lab.flavor(4), {'lifetime': '1h'})

    decisions = ask(server)

    found = hosts(decisions)
    assert found.keys() == {'c1', 'c2', 'c3', 'c4'}
    assert 'whole host is reserved from' in found['c1']
    assert 'dedicated' in found['c2']
    assert '2 VCPU left, 4 requested' in found['c3']
    assert 'whole host is reserved at once' in found['c4']
    assert [(d['filter'], d['seen'], d['passed']) for d in decisions] == [
        ('ReservationFilter', 4, 3), ('LifetimeFilter', 3, 0)
    ]
    asked = decisions[0]['asked']
    assert asked['kind'] == 'bounded'
    assert asked['amounts']['VCPU'] == 4
    assert asked['project_id'] == lab.cloud.project_id


def test_output_of_why_is_readable(lab, ask):
    lab.register('c1', 'c2', 'c3', 'c4', hold='dedicated')
    server = refused(lab, lab.flavor(), None)
    shown = io.StringIO()

    why.show(
        ask(server, 'c3'), rich.console.Console(file=shown, width=200), 'c3'
    )

    text = shown.getvalue()
    assert 'ReservationFilter' in text
    assert '0 of 4 hosts passed' in text
    assert 'asked: unbounded' in text
    assert 'c3' in text
    assert 'c1' not in text


def test_each_worker_tells_its_revision(lab, bus):
    lab.register('c1')

    answers = wait_for(
        'an answer', lambda: schedulers.query(bus, 1, wire.REPORT_METHOD)
    )

    # A late answer to an earlier query is there, too.
    [(name, report)] = dict(answers).items()

    newest = lab.ledger.changes(0, 1)['newest']
    assert report['revision'] == newest
    assert report['hosts'] == 1
    assert report['stale'] is False
    assert report['wire'] == wire.WIRE_VERSION
    assert report['ledger'] == lab.ledger.id
    assert name == process.ensure_started().name
