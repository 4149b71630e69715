# SPDX-License-Identifier: Apache-2.0
"""Two hundred leases of a real Blazar 18 move to blazar-sched and back.

Blazar's own programs have made the tables, and read them afterwards. What its
client shows is compared with what the client has shown of blazar-sched.
"""

import datetime
import time

import pytest
import sqlalchemy as sa

from blazar_sched.domain import exception
from blazar_sched.parts.blazar.exporting.exporter import Exporter
from tests.parts.blazar import conftest
from tests.parts.blazar import database
from tests.parts.blazar import shown
from tests.parts.blazar import test_blazar as filling

pytestmark = pytest.mark.services

LEASES = 200
# The leases that are made through Blazar's API.
_MADE = 7


@pytest.fixture
def ledger_url(real_blazar):
    return real_blazar.ledger


def add_leases(url):
    """Add pending leases to the tables until there are LEASES of them."""
    tables = database.Database(url)
    hosts = {
        row['hypervisor_hostname']: id_
        for id_, row in tables.rows('computehosts').items()
    }
    trust = next(iter(tables.rows('leases').values()))['trust_id']
    now = datetime.datetime.now(datetime.UTC).replace(
        second=0, microsecond=0, tzinfo=None
    )
    for number in range(LEASES - _MADE):
        start = now - database.NOW + (300 + number) * database.HOUR
        lease = tables.lease(
            'PENDING', start, start + database.HOUR, name=f'no. {number} ü',
            trust_id=trust, user_id='amy', project_id='demo',
        )  # fmt: skip
        one, two, three = hosts.values()
        tables.hosts(lease, one, two)
        tables.instances(lease, three, three, three)
    tables.engine.dispose()


def change(url):
    """Change leases under blazar-sched: three new, two moved, two deleted."""
    amy = conftest.client(url, 'amy:demo')
    known = {each['name']: each['id'] for each in amy.lease.list()}
    for number, reservation in enumerate(
        (filling.HOST, filling.INSTANCES, filling.FLOATING_IPS)
    ):
        filling.book(
            amy, f'new {number}', reservation,
            start=filling.at(days=100 + number),
            end=filling.at(days=101 + number),
        )  # fmt: skip
    amy.lease.update(known['no. 3 ü'], defer_by='90d', prolong_for='90d')
    amy.lease.update(known['no. 4 ü'], name='renamed')
    for name in ('no. 5 ü', 'no. 6 ü'):
        amy.lease.delete(known[name])


def give_trusts(url):
    """Give trusts to the new leases: there is no Keystone."""
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql(
            'UPDATE lease SET trust_id = (SELECT known.trust FROM '
            '(SELECT MAX(trust_id) AS trust FROM lease) AS known) '
            'WHERE trust_id IS NULL'
        )
    engine.dispose()


def without_objects(entities):
    """Remove what is made anew: the stand-ins of Nova are two clouds."""
    for lease in entities['leases']:
        for reservation in lease['reservations']:
            for name in ('aggregate_id', 'server_group_id'):
                reservation.pop(name, None)
    return entities


def test_leases_move_there_and_back(
    real_blazar, importer, serve, site, record_property
):
    with real_blazar.running() as url:
        filling.fill(url)
    add_leases(real_blazar.url)
    began = time.monotonic()
    plan = importer.plan(real_blazar.url)
    assert plan.refused == []
    importer.write(plan)
    record_property('import', time.monotonic() - began)
    services = site.manager().services
    exporter = Exporter(site.conf, services)
    assert exporter.compare(real_blazar.url) == []
    url = serve()
    change(url)
    give_trusts(real_blazar.ledger)
    before = without_objects(shown.shown(conftest.client(url)))
    began = time.monotonic()
    plan = exporter.plan(real_blazar.url)
    assert plan.refused == []
    assert len(plan.deleted) == 2
    exporter.write(real_blazar.url, plan)
    assert exporter.compare(real_blazar.url, plan) == []
    record_property('export', time.monotonic() - began)
    with real_blazar.running() as url:
        after = without_objects(shown.shown(conftest.client(url)))
        admin = conftest.client(url)
        assert len(after['leases']) == LEASES + 1
        assert after['leases'] == before['leases']
        assert after == before
        # Blazar's own writes make its database the newer one.
        admin.lease.update(after['leases'][0]['id'], name='by Blazar')
        with pytest.raises(exception.Conflict, match='stop Blazar'):
            exporter.write(real_blazar.url, plan)
    with pytest.raises(exception.Conflict, match='newer'):
        exporter.plan(real_blazar.url)
