# SPDX-License-Identifier: Apache-2.0
"""Servers that are moved while they are stopped, when their owners choose."""

import dataclasses

import pytest

from blazar_sched.domain import duration
from blazar_sched.service.upkeep.relocation import MOVE_AT
from blazar_sched.service.upkeep.relocation import MOVING
from blazar_sched.service.upkeep.relocation import PAUSE
from tests.functional.manager.relocating import FEATURES
from tests.functional.manager.relocating import LEAD
from tests.functional.manager.relocating import NOTICE
from tests.functional.manager.relocating import RelocatingManager

pytestmark = pytest.mark.row('F95')

# Seconds for the owner to choose a time, before the last possible start.
CHOICE = 120
WITH_DEVICE = dataclasses.replace(FEATURES, devices=True)


@pytest.fixture
def site(conf):
    conf.set_override('relocation_ways', {'device': 'cold'}, 'manager')
    conf.set_override('relocation_cold_notice', CHOICE, 'manager')
    site = RelocatingManager(conf)
    yield site
    site.ledger.close()


@pytest.fixture
def server(site):
    """A server that has to leave host a before a lease, NOTICE from now."""
    server = site.boot('a', features=WITH_DEVICE)
    site.reserve('a')
    return server


def shown(site, server):
    return site.nova.stored[server.uuid]


def choose(site, server, at):
    site.nova.set_server_metadata(server, {MOVE_AT: duration.format_time(at)})


def test_the_owner_is_told_and_the_server_is_moved_at_the_last_time(
    site, server
):
    latest = site.now + NOTICE - LEAD
    site.look(NOTICE - LEAD - CHOICE - 1)
    assert shown(site, server).metadata == {}

    site.look(1)
    assert shown(site, server).metadata == {
        MOVE_AT: duration.format_time(latest)
    }
    site.look(CHOICE - 1)
    assert shown(site, server).node == 'a'

    site.look(1)
    target = shown(site, server).node
    assert target != 'a'
    # The place that the server has left is given up.
    site.look()
    site.look()
    assert shown(site, server).status == 'ACTIVE'
    assert shown(site, server).metadata == {}
    site.look(LEAD)
    site.check_promises()
    assert shown(site, server).node == target


def test_the_owner_chooses_an_earlier_time(site, server):
    site.look(NOTICE - LEAD - CHOICE)
    choose(site, server, site.now + 40)
    site.look(PAUSE)
    assert shown(site, server).node == 'a'
    site.look(PAUSE)
    assert shown(site, server).node != 'a'


@pytest.mark.parametrize('text', ['soon', '', '2999-01-01T00:00:00Z'])
def test_a_time_that_is_too_late_is_corrected(site, server, text):
    latest = site.now + NOTICE - LEAD
    site.look(NOTICE - LEAD - CHOICE)
    site.nova.set_server_metadata(server, {MOVE_AT: text})
    site.look(PAUSE)
    assert shown(site, server).metadata[MOVE_AT] == (
        duration.format_time(latest)
    )
    assert shown(site, server).node == 'a'


def test_the_owner_is_notified_once(site, server, monkeypatch):
    sent = []
    monkeypatch.setattr(
        site.manager.notifier, 'tell',
        lambda event_type, payload: sent.append((event_type, payload)),
    )
    latest = site.now + NOTICE - LEAD
    site.look(NOTICE - LEAD - CHOICE)
    site.look(PAUSE)
    site.look(PAUSE)
    [(event_type, fields)] = sent
    assert event_type == 'instance.relocation.planned'
    assert fields['move_at'] == duration.format_time(latest)


@pytest.fixture
def unconfirmed(site, server, monkeypatch):
    """A server that Nova has moved, and that no manager has confirmed yet."""
    site.look(NOTICE - LEAD - CHOICE)
    choose(site, server, site.now)
    with monkeypatch.context() as killed:
        killed.setattr(
            site.manager.relocations, '_confirm', lambda moving: None
        )
        site.look(PAUSE)
    assert shown(site, server).status == 'VERIFY_RESIZE'
    return server


def test_a_manager_that_starts_confirms_what_another_one_has_moved(
    site, unconfirmed
):
    site.manager.relocations._unconfirmed = None
    site.look()
    site.look()
    assert shown(site, unconfirmed).status == 'ACTIVE'
    assert shown(site, unconfirmed).metadata == {}


def test_a_move_without_a_mark_is_confirmed(site, server, monkeypatch):
    """Nova refuses metadata beyond a quota; owners may delete the mark."""
    monkeypatch.setattr(
        site.nova, 'set_server_metadata', lambda server, metadata: None
    )
    site.look(NOTICE - LEAD - CHOICE)
    site.look(CHOICE)
    assert shown(site, server).node != 'a'
    site.look()
    assert shown(site, server).status == 'ACTIVE'


def test_a_server_that_has_to_move_on_is_confirmed_first(site, unconfirmed):
    """Nova refuses the next migration until the last one is confirmed."""
    site.manager.relocations._confirm({unconfirmed.uuid: 'yet another host'})
    assert shown(site, unconfirmed).status == 'ACTIVE'


def test_the_resize_of_a_user_is_not_confirmed(site, server):
    """A control: the mark names the host to which the service has moved."""
    site.look(NOTICE - LEAD - CHOICE)
    site.nova.stored[server.uuid] = dataclasses.replace(
        shown(site, server), status='VERIFY_RESIZE', node='d'
    )
    site.manager.relocations._unconfirmed = None
    for metadata in ({}, {MOVING: 'c'}):
        site.nova.set_server_metadata(server, metadata)
        site.look()
        assert shown(site, server).status == 'VERIFY_RESIZE'


def test_a_cold_move_needs_room_on_both_hosts_while_the_owner_chooses(
    site, server
):
    path = site.ledger.instance(server.uuid).path
    assert path[0].end - path[1].start == LEAD + CHOICE


def test_a_live_move_is_not_told(site):
    server = site.boot('a')
    site.reserve('a')
    site.look(NOTICE - LEAD)
    assert shown(site, server).node != 'a'
    assert shown(site, server).metadata == {}
