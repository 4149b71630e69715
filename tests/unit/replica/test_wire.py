# SPDX-License-Identifier: Apache-2.0
"""Pages survive JSON; invalid pages are refused with the name of the fault."""

import json

import pytest

from blazar_sched.replica import wire

LEDGER = '5bb0ef43-3d64-4a4a-9b5c-6a6d3b1d7c35'
RECORDS = [
    ('instance', 'i1', {'uuid': 'i1', 'end': 2**63 - 1}),
    ('allocation', 'a1', {
        'id': 'a1', 'reservation_id': 'r1', 'host': 'h1', 'start': 5,
        'end': 2**63 - 1, 'amounts': {'VCPU': 3}, 'whole': False,
    }),
]
GONE = ('instance', 'i2', None)


def over_the_wire(page):
    return json.loads(json.dumps(page))


def test_changes_arrive_as_sent():
    records = [*RECORDS, GONE]
    page = over_the_wire(wire.changes_page(LEDGER, 3, 5, records, 9))
    assert wire.parse_changes(page) == wire.Changes(LEDGER, 3, 5, records, 9)


def test_forgotten_revision_arrives_as_none():
    page = over_the_wire(wire.changes_page(LEDGER, 3, None, [], 9))
    assert wire.parse_changes(page).revision is None


def test_snapshot_arrives_as_sent():
    items = [*RECORDS, 'packed']
    page = over_the_wire(
        wire.snapshot_page(LEDGER, 5, 'host/1', items, 'host/7')
    )
    assert wire.parse_snapshot(page) == wire.Snapshot(
        LEDGER, 5, 'host/1', items, 'host/7'
    )


def test_last_page_of_a_snapshot_has_no_next():
    page = over_the_wire(wire.snapshot_page(LEDGER, 5, None, [], None))
    assert wire.parse_snapshot(page).next is None


@pytest.mark.parametrize(
    'version, told',
    [
        (wire.OLDEST_WIRE_VERSION - 1,
         'older than ours, {}: upgrade blazar-sched where the manager'),
        (wire.WIRE_VERSION + 1,
         'newer than ours, {}: upgrade blazar-sched where nova-scheduler'),
    ],
)
@pytest.mark.parametrize('parse', [wire.parse_changes, wire.parse_snapshot])
def test_another_version_is_refused_saying_what_to_do(parse, version, told):
    told = told.format(wire.WIRE_VERSION)
    with pytest.raises(wire.WireVersionError, match=told):
        parse({'version': version})


@pytest.mark.parametrize('step, oldest', [(1, 0), (7, -1), (0, -3)])
def test_a_version_that_this_version_reads_is_read(step, oldest):
    page = wire.changes_page(LEDGER, 3, 5, [('host', 'h', None)] * 2, 9) | {
        'version': wire.WIRE_VERSION + step, 'fields': 'of the next version',
        'oldest': wire.WIRE_VERSION + oldest,
    }
    assert wire.parse_changes(page).revision == 5


@pytest.mark.parametrize('version', [None, '4', True, 4.0])
@pytest.mark.parametrize('parse', [wire.parse_changes, wire.parse_snapshot])
def test_no_version_is_malformed(parse, version):
    page = wire.changes_page(LEDGER, 3, 5, [], 9)
    with pytest.raises(ValueError, match='no version'):
        parse(page | {'version': version})


@pytest.mark.parametrize('wrong', [
    {'ledger': None},
    {'ledger': ''},
    {'ledger': 7},
    {'since': -1},
    {'since': '3'},
    {'since': True},
    {'revision': 2},
    {'revision': 10},
    {'revision': 4.0},
    {'newest': None},
    {'records': None},
    {'records': {}},
    {'records': []},
    {'records': RECORDS[:1]},
    {'records': ['abc']},
    {'records': [['host', 'h1']]},
    {'records': [[1, 'h1', None]]},
    {'records': [['host', None, None]]},
    {'records': [['host', 'h1', []]]},
    {'records': [['host', 'h1', 'gone']]},
    {'now': True},
    {'now': '1900000000'},
    {'now': -1},
    {'now': float('nan')},
    {'now': float('inf')},
], ids=str)
def test_malformed_changes_are_refused(wrong):
    page = wire.changes_page(LEDGER, 3, 5, RECORDS, 9) | wrong
    with pytest.raises(ValueError):
        wire.parse_changes(page)


@pytest.mark.parametrize('wrong', [
    {'revision': None}, {'next': 7}, {'next': ''}, {'after': 7},
    {'items': [[]]}, {'items': 'packed'},
], ids=str)
def test_malformed_snapshots_are_refused(wrong):
    page = wire.snapshot_page(LEDGER, 5, None, RECORDS, 'host/7') | wrong
    with pytest.raises(ValueError):
        wire.parse_snapshot(page)


@pytest.mark.parametrize('page', [None, [], 'page', 7])
@pytest.mark.parametrize('parse', [wire.parse_changes, wire.parse_snapshot])
def test_what_is_no_object_is_refused(parse, page):
    with pytest.raises(ValueError):
        parse(page)
