# SPDX-License-Identifier: Apache-2.0
"""Domain objects: windows, inventory, hosts, leases, errors."""

import dataclasses

import pytest

from blazar_sched.domain import event
from blazar_sched.domain import exception
from blazar_sched.domain import window
from blazar_sched.domain.event import Event
from blazar_sched.domain.host import Host
from blazar_sched.domain.inventory import Inventory
from blazar_sched.domain.lease import Lease
from blazar_sched.domain.window import Window


class TestWindow:
    def test_window_is_half_open(self):
        first, second = Window(10, 20), Window(20, 30)
        assert first.contains(10) and not first.contains(20)
        assert not first.overlaps(second)
        assert not second.overlaps(first)
        assert first.overlaps(Window(19, 20))

    def test_window_without_end_contains_every_later_time(self):
        unbounded = Window(10)
        assert unbounded.duration == window.FOREVER
        assert unbounded.contains(window.TIME_LIMIT)
        assert unbounded.overlaps(Window(10**9, 10**9 + 1))

    def test_window_of_one_second(self):
        assert Window(10, 11).duration == 1

    @pytest.mark.parametrize('start, end, field', [
        (10, 10, 'end_date'),
        (10, 9, 'end_date'),
        (-1, 9, 'start_date'),
        (window.TIME_LIMIT, window.FOREVER, 'start_date'),
        (10, window.TIME_LIMIT, 'end_date'),
        (10, window.FOREVER - 1, 'end_date'),
    ])
    def test_invalid_window_is_refused_by_field(self, start, end, field):
        with pytest.raises(exception.InvalidInput) as caught:
            Window(start, end)
        assert caught.value.field == field


class TestHost:
    HOST = Host(
        uuid='u', id='1', hypervisor_hostname='h', availability_zone='az1',
        inventory={
            'VCPU': Inventory(16, 2, 4.0),
            'MEMORY_MB': Inventory(1024, 512, 1.5),
        },
        capabilities={'gpu': 'a100', 'vcpus': '999'},
    )

    def test_amounts_are_what_placement_hands_out(self):
        assert self.HOST.amounts() == (56, 768, 0)
        assert self.HOST.amounts(reserved=True) == (58, 1280, 0)

    def test_properties(self):
        properties = self.HOST.properties()
        assert properties['gpu'] == 'a100'
        assert properties['availability_zone'] == 'az1'
        assert properties['memory_mb'] == '1024'
        assert properties['local_gb'] == '0'

    @pytest.mark.parametrize('name', ['vcpus', 'capabilities:vcpus'])
    def test_a_capability_cannot_hide_what_nova_says(self, name):
        hiding = dataclasses.replace(self.HOST, capabilities={name: '999'})
        assert hiding.properties()['vcpus'] == '16'


def test_before_end_of_a_lease():
    plain = Lease('l', 'n', 'p', 'u', 10, 20, 'PENDING')
    assert plain.before_end is None
    told = Lease(
        'l', 'n', 'p', 'u', 10, 20, 'PENDING',
        events=(
            Event('e1', 'l', event.START_LEASE, 10, 'UNDONE'),
            Event('e2', 'l', event.BEFORE_END_LEASE, 15, 'UNDONE'),
            Event('e3', 'l', event.END_LEASE, 20, 'UNDONE'),
        ),
    )
    assert told.before_end == 15
    assert told.window == Window(10, 20)


def errors(kind):
    yield kind
    for below in kind.__subclasses__():
        yield from errors(below)


@pytest.mark.parametrize('kind', list(errors(exception.BlazarSchedError)))
def test_an_error_is_built_again_from_args_and_kwargs(kind):
    for sent in (kind('what is wrong'), kind('what is wrong', field='f')):
        received = kind(*sent.args, **sent.kwargs)
        assert str(received) == 'what is wrong'
        assert received.field == sent.field
        assert received.status == sent.status


def test_at_one_instant_an_end_makes_room_for_a_start():
    due = [
        Event(f'{lease}-{type_}', lease, type_, 100, 'UNDONE')
        for lease, type_ in (
            ('starting', event.BEFORE_END_LEASE),
            ('starting', event.START_LEASE),
            ('starting', event.VACATE_HOSTS),
            ('ending', event.END_LEASE),
            ('ending', event.BEFORE_END_LEASE),
        )
    ]
    ordered = sorted(due, key=event.due_order(due))
    assert [(e.lease_id, e.event_type) for e in ordered] == [
        ('ending', event.BEFORE_END_LEASE),
        ('ending', event.END_LEASE),
        ('starting', event.VACATE_HOSTS),
        ('starting', event.START_LEASE),
        ('starting', event.BEFORE_END_LEASE),
    ]
