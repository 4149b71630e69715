# SPDX-License-Identifier: Apache-2.0
"""The request filter that frees a server of a reservation that is over."""

import types

from nova import objects
from nova.objects import request_spec
from nova.scheduler.client import report
import pytest

from blazar_sched.hooks import request_filter
from blazar_sched.replica import limited_log

ID = '8d6d7b0e-0f0f-4d53-8b0b-9f3f0e7a2c11'
SLOT = 'resources:CUSTOM_RESERVATION_8D6D7B0E_0F0F_4D53_8B0B_9F3F0E7A2C11'
OURS = {'blazar:reservation': ID, SLOT: '1'}
BLAZARS = {
    'aggregate_instance_extra_specs:reservation': ID, 'affinity_id': 'group',
    SLOT: '1',
}
OTHERS = {
    'trait:HW_CPU_X86_AVX': 'required', 'resources:CUSTOM_GPU': '1',
    'blazar:movable': 'live',
}

objects.register_all()


@pytest.fixture(autouse=True)
def asked(monkeypatch):
    """The questions to Placement, whose answer is `status`."""
    asked = types.SimpleNamespace(urls=[], status=404)

    def get(url, version):
        asked.urls.append(url)
        if isinstance(asked.status, Exception):
            raise asked.status
        return types.SimpleNamespace(status_code=asked.status)

    monkeypatch.setattr(
        report, 'report_client_singleton',
        lambda: types.SimpleNamespace(get=get),
    )
    monkeypatch.setattr(
        request_filter, 'failure', limited_log.LimitedLog(request_filter.LOG)
    )
    return asked


def make_spec(extra_specs, new=False):
    spec = objects.RequestSpec(
        flavor=objects.Flavor(extra_specs=dict(extra_specs))
    )
    if not new:
        cell = objects.CellMapping()
        spec.requested_destination = request_spec.Destination(cell=cell)
    return spec


def left(spec):
    """Return the extra specs that a request has after the request filter."""
    before = dict(spec.flavor.extra_specs)
    changed = request_filter.leave_reservation(None, spec)
    assert changed == (spec.flavor.extra_specs != before)
    return spec.flavor.extra_specs


@pytest.mark.parametrize('named', [OURS, BLAZARS, {**OURS, **BLAZARS}])
def test_a_move_loses_what_the_reservation_has_given_to_the_flavor(
    asked, named
):
    assert left(make_spec({**named, **OTHERS})) == OTHERS
    assert asked.urls == [f'/resource_classes/{SLOT.partition(":")[2]}']


def test_a_boot_keeps_it(asked):
    assert left(make_spec(OURS, new=True)) == OURS
    assert asked.urls == []


def test_a_move_of_any_other_server_asks_nothing(asked):
    assert left(make_spec(OTHERS)) == OTHERS
    assert left(make_spec({})) == {}
    assert asked.urls == []


@pytest.mark.parametrize('status', [200, 401, 503, OSError('no route')])
def test_a_reservation_that_may_be_open_is_kept(asked, status):
    asked.status = status
    assert left(make_spec(OURS)) == OURS


def test_a_request_that_cannot_be_read_does_not_fail():
    assert not request_filter.leave_reservation(None, object())
