# SPDX-License-Identifier: Apache-2.0
"""Thresholds in the ledger, which one of several managers changes."""

import dataclasses
import uuid

import pytest

from blazar_sched.domain import exception
from blazar_sched.domain.threshold import Threshold

ID = str(uuid.UUID(int=7))


def noun(**fields):
    return Threshold(**{
        'id': ID, 'name': 'rack 7', 'project_id': 'p1',
        'resource_properties': '["==", "$rack", "7"]', 'flavor_id': None,
        'below': 5, 'within': 600, 'low': False, 'since': 100, 'free': 7,
        'created_at': 100, **fields,
    })


@pytest.fixture
def made(store):
    new = noun()
    store.write(lambda tx: tx.add_threshold(new))
    return new


def change(store, old, **values):
    return store.write(lambda tx: tx.change_threshold(old, values))


def test_what_is_added_is_there(store, made):
    other = noun(id=str(uuid.UUID(int=8)), flavor_id='f', low=True)
    store.write(lambda tx: tx.add_threshold(other))
    assert store.thresholds() == [made, other]
    assert store.thresholds(made.id) == [other]
    assert store.threshold(ID) == made
    assert store.changes(0)['newest'] == 0


@pytest.mark.parametrize('unknown', [str(uuid.UUID(int=1)), 'no id', '\0', ''])
def test_an_unknown_one(store, made, unknown):
    with pytest.raises(exception.ThresholdNotFound):
        store.threshold(unknown)
    with pytest.raises(exception.ThresholdNotFound):
        store.write(lambda tx: tx.delete_threshold(unknown))
    assert store.thresholds() == [made]


def test_of_two_that_change_it_one_succeeds(store, made):
    values = {'low': True, 'since': 200, 'free': 4, 'notify_at': 200}
    assert change(store, made, **values)
    assert not change(store, made, **values)
    assert not change(store, made, **{**values, 'since': 201})
    assert store.threshold(ID) == dataclasses.replace(made, **values)


@pytest.mark.parametrize('when', ['notify_at', 'post_at'])
def test_a_time_is_set_and_cleared_once(store, made, when):
    assert change(store, made, **{when: 260})
    assert not change(store, made, **{when: 261})
    claimed = store.threshold(ID)
    assert change(store, claimed, **{when: None})
    assert not change(store, claimed, **{when: None})
    assert store.threshold(ID) == made


def test_the_times_change_beside_each_other(store, made):
    assert change(store, made, notify_at=260)
    assert change(store, made, post_at=270)
    assert store.threshold(ID) == noun(notify_at=260, post_at=270)


def test_a_deleted_one_is_not_changed(store, made):
    store.write(lambda tx: tx.delete_threshold(ID))
    assert not change(store, made, post_at=270)
    assert store.thresholds() == []
