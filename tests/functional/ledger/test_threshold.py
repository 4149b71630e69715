# SPDX-License-Identifier: Apache-2.0
"""Thresholds in the ledger, which one of several managers changes."""

import dataclasses
import uuid

import pytest

from blazar_sched.domain.threshold import Threshold

ID = str(uuid.UUID(int=7))


def noun(**fields):
    return Threshold(**{
        'id': ID, 'name': 'rack 7', 'project_id': 'p1',
        'resource_properties': '["==", "$rack", "7"]', 'flavor_id': None,
        'below': 5, 'within': 600, **fields,
    })


@pytest.fixture
def made(store):
    """A threshold that was crossed twice."""
    new = noun()
    for low, since in (True, 100), (False, 150):
        assert change(store, new, low=low, since=since)
        [new] = store.thresholds()
    return new


def change(store, old, **values):
    return store.write(lambda tx: tx.change_threshold(old, values))


def test_a_threshold_is_there_once_it_is_crossed(store, made):
    other = noun(id=str(uuid.UUID(int=8)), flavor_id='f')
    assert store.thresholds() == [made]
    assert change(store, other, low=True)
    assert store.thresholds() == [made, dataclasses.replace(other, low=True)]
    assert store.changes(0)['newest'] == 0


def test_of_two_that_cross_a_threshold_first_one_succeeds(store):
    values = {'low': True, 'since': 200, 'free': 4, 'notify_at': 200}
    assert change(store, noun(), **values)
    assert not change(store, noun(), **values)
    assert store.thresholds() == [noun(**values)]


def test_of_two_that_change_it_one_succeeds(store, made):
    values = {'low': True, 'since': 200, 'free': 4, 'notify_at': 200}
    assert change(store, made, **values)
    assert not change(store, made, **values)
    assert not change(store, made, **{**values, 'since': 201})
    assert store.thresholds() == [dataclasses.replace(made, **values)]


@pytest.mark.parametrize('when', ['notify_at', 'post_at'])
def test_a_time_is_set_and_cleared_once(store, made, when):
    assert change(store, made, **{when: 260})
    assert not change(store, made, **{when: 261})
    [claimed] = store.thresholds()
    assert change(store, claimed, **{when: None})
    assert not change(store, claimed, **{when: None})
    assert store.thresholds() == [made]


def test_the_times_change_beside_each_other(store, made):
    assert change(store, made, notify_at=260)
    assert change(store, made, post_at=270)
    assert store.thresholds() == [
        dataclasses.replace(made, notify_at=260, post_at=270)
    ]
