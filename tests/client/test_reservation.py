# SPDX-License-Identifier: Apache-2.0
"""Reservations as options of a command."""

import argparse

import pytest

from blazar_sched_client.osc.reservation import parse


@pytest.mark.parametrize(
    ('text', 'fields'),
    [
        ('resource_type=physical:host,min=1,max=3',
         {'resource_type': 'physical:host', 'min': '1', 'max': '3'}),
        ('min=1,hypervisor_properties=[">=", "$vcpus", "48"],'
         'resource_properties=["==","$gpu","a100"]',
         {'min': '1', 'hypervisor_properties': '[">=", "$vcpus", "48"]',
          'resource_properties': '["==","$gpu","a100"]'}),
        ('projects=["p1", "p2"],magnetic=true,affinity=null',
         {'projects': ['p1', 'p2'], 'magnetic': True,
          'affinity': None}),
        ('affinity=True,before_end=,flavor_id=42',
         {'affinity': 'True', 'before_end': '', 'flavor_id': '42'}),
        ('ephemeral_gb=3,extra_specs={"hw:a": "b", "os:c": "d"},vcpus=1',
         {'ephemeral_gb': '3', 'extra_specs': {'hw:a': 'b', 'os:c': 'd'},
          'vcpus': '1'}),
        ('{"min": 1, "projects": []}', {'min': 1, 'projects': []}),
    ],
)  # fmt: skip
def test_a_reservation_is_read(text, fields):
    assert parse(text) == fields


@pytest.mark.parametrize('text', ['physical:host', '{"min"', 'projects=[p1]'])
def test_another_form_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match='key=value'):
        parse(text)
