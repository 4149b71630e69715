# SPDX-License-Identifier: Apache-2.0
"""Thresholds as options: read from a file, refused, and read again."""

import pytest

from blazar_sched.conf import service

A100 = (
    '{"name": "A100 hosts", "below": 5, "within": 604800, '
    '"project_id": "p7",\n  "resource_properties": ["==", "$$gpu", "a100"]}'
)
SMALL = '{"name": "small instances", "below": 20, "flavor_id": "2"}'


@pytest.fixture
def configure(tmp_path):
    """configure(value, …) -> the arguments of the file with these values."""
    path = tmp_path / 'blazar-sched.conf'

    def configure(*values):
        lines = [f'capacity_threshold = {each}' for each in values]
        path.write_text('\n'.join(['[manager]', *lines]))
        return ['--config-file', str(path)]

    return configure


def thresholds(conf):
    return conf.manager.capacity_threshold


def test_thresholds_are_read_from_a_file(configure):
    a100, small = thresholds(service.load(configure(A100, SMALL)))
    assert (
        a100.name, a100.below, a100.within, a100.resource_properties,
        a100.flavor_id, a100.project_id,
    ) == (
        'A100 hosts', 5, 604800, '["==", "$gpu", "a100"]', None, 'p7',
    )
    assert (
        small.name, small.below, small.within, small.resource_properties,
        small.flavor_id, small.project_id,
    ) == ('small instances', 20, 0, '', '2', '')


def test_there_is_no_threshold_by_default(configure):
    assert thresholds(service.load(configure())) == []


def test_equal_thresholds_have_one_id_and_others_another(configure):
    """All managers, and a manager that starts again, have the same ids."""
    values = A100, A100.replace('": ', '":'), A100.replace('5', '6'), SMALL
    same, spaced, other, small = thresholds(service.load(configure(*values)))
    assert same == spaced
    assert len({same.id, other.id, small.id}) == 3


@pytest.mark.parametrize(
    ('changed', 'named'),
    [
        (('"name": "small instances", ', ''), 'name'),
        (('small instances', ''), 'name'),
        (('small instances', 'a\\nb'), 'name'),
        (('small instances', 'a' * 256), 'name'),
        (('20', '0'), 'below'),
        (('20', '1.5'), 'below'),
        (('20', 'null'), 'below'),
        (('"below": 20, ', ''), 'below'),
        (('}', ', "within": -1}'), 'within'),
        (('}', ', "within": "7d"}'), 'within'),
        (('}', ', "resource_properties": ["=="]}'), 'resource_properties'),
        (('}', ', "resource_properties": "[]"}'), 'resource_properties'),
        (('"2"', '2'), 'flavor_id'),
        (('}', ', "above": 7}'), 'above'),
        (('}', ''), 'delimiter'),
        ((SMALL, '["small instances", 20]'), 'small instances'),
    ],
)
def test_a_wrong_threshold_is_named_with_its_field(
    configure, changed, named
):
    wrong = SMALL.replace(*changed)
    with pytest.raises(ValueError) as refusal:
        service.load(configure(A100, wrong))
    message = str(refusal.value)
    assert '[manager] capacity_threshold: ' in message
    assert wrong[:100] in message.replace('\\\\', '\\')
    assert named in message
    assert 'A100' not in message


def test_thresholds_are_read_again(configure):
    conf = service.load(configure(A100))
    [old] = thresholds(conf)
    configure(A100, SMALL)
    conf.mutate_config_files()
    assert thresholds(conf)[0] == old
    assert len(thresholds(conf)) == 2
