# SPDX-License-Identifier: Apache-2.0
"""The changes of stack.sh in Nova's files, and their removal by clean.sh."""

import pathlib
import shutil

from nova.scheduler import filters
from nova.scheduler import weights
from paste import deploy
from paste.deploy import loadwsgi
import pytest

from blazar_sched.hooks import middleware
from tests.devstack.node import api_paste_ini
from tests.devstack.node import REPOSITORY

FILTERS = ['ReservationFilter', 'LifetimeFilter']
AVAILABLE = 'blazar_sched.filters.all_filters'
WEIGHERS = 'blazar_sched.weighers.all_weighers'
NOVAS = 'nova.scheduler.filters.all_filters'
PIPELINES = (
    'openstack_compute_api_v21',
    'openstack_compute_api_v21_legacy_v2_compatible',
)
# The content that another plugin, or local.conf, may have written.
USED = """
[filter_scheduler]
enabled_filters = ComputeFilter, SameHostFilter
# Kept by somebody else.
available_filters = nova.scheduler.filters.all_filters
available_filters = nova.scheduler.filters.compute_filter.ComputeFilter
weight_classes = nova.scheduler.weights.ram.RAMWeigher

[scheduler]
max_placement_results = 500

[libvirt]
virt_type = qemu

"""


def enabled_once(conf):
    """Tell whether both filters are enabled once, at the end."""
    names = conf.filter_scheduler.enabled_filters
    return names[-2:] == FILTERS and len(set(names)) == len(names)


def available_once(conf):
    return conf.filter_scheduler.available_filters.count(AVAILABLE) == 1


def pipeline(path, name):
    context = loadwsgi.loadcontext(loadwsgi.APP, f'config:{path}', name=name)
    return context.local_conf['keystone'].split()


def passed_once(path):
    """Tell whether the API filter is in its place once, in all pipelines."""
    for name in PIPELINES:
        expected = pipeline(api_paste_ini(), name)
        after = expected.index('keystonecontext') + 1
        expected.insert(after, 'blazar_sched')
        if pipeline(path, name) != expected:
            return False
    return True


@pytest.mark.row('F92')
def test_nova_scheduler_finds_every_filter_and_weigher(stacked):
    group = stacked.nova_options().filter_scheduler
    found = filters.HostFilterHandler().get_matching_classes(
        group.available_filters
    )
    weighers = weights.HostWeightHandler().get_matching_classes(
        group.weight_classes
    )
    names = [each.__name__ for each in found]
    assert set(group.enabled_filters) <= set(names)
    assert len(set(names)) == len(names)
    names = [each.__name__ for each in weighers]
    assert {'RAMWeigher', 'LeaseGapWeigher', 'VacateCostWeigher'} <= set(names)
    assert len(set(names)) == len(names)
    assert group.ram_weight_multiplier == -1
    assert group.cpu_weight_multiplier == -1


def test_filters_come_beside_those_that_were_there(stacked):
    conf = stacked.nova_options()
    assert enabled_once(conf)
    assert {'ComputeFilter', 'SameHostFilter'} <= set(
        conf.filter_scheduler.enabled_filters
    )
    assert sorted(conf.filter_scheduler.available_filters) == [
        AVAILABLE, NOVAS,
    ]
    assert conf.scheduler.max_placement_results == 10000


def test_filters_know_the_bus_and_have_a_place_for_the_snapshot(stacked):
    group = stacked.nova_options().blazar_sched
    assert group.transport_url.startswith('rabbit://stackrabbit:')
    path = pathlib.Path(group.snapshot_path)
    assert path.parent == stacked.state / 'data/nova'


def test_nova_api_has_our_filter_in_both_pipelines(stacked):
    assert passed_once(stacked.api_paste)
    config = f'config:{stacked.api_paste}'
    made = deploy.loadfilter(config, name='blazar_sched')
    assert isinstance(made(None), middleware.Middleware)


def test_nova_sends_versioned_notifications(stacked):
    conf = stacked.nova_options()
    assert conf.notifications.notification_format == 'both'
    assert conf.oslo_messaging_notifications.driver == ['messagingv2']
    assert stacked.service_options().manager.enable_notification_monitor


def test_conductors_of_cells_send_to_the_bus_of_the_cloud(stacked):
    text = (stacked.nova_conf.parent / 'nova_cell1.conf').read_text()
    bus = stacked.nova_options().transport_url
    assert 'driver = messagingv2' in text
    assert f'[oslo_messaging_notifications]\ntransport_url = {bus}\n' in text
    assert 'notification_format = both' in text


def test_local_conf_may_have_it_send_others(new_node):
    node = new_node(NOVA_NOTIFICATION_FORMAT='unversioned')
    node.stack()
    format_ = node.nova_options().notifications.notification_format
    assert format_ == 'unversioned'
    assert not node.service_options().manager.enable_notification_monitor


def test_a_second_run_changes_no_file(node):
    before = node.files()
    node.stack()
    assert node.files() == before


def test_a_run_on_new_files_is_like_the_first(node):
    before = node.files()
    node.unstack()
    node.nova_conf.unlink()
    node.api_paste.unlink()
    node.stack()
    assert node.nova_conf.read_text() == before['nova/nova.conf']
    assert node.api_paste.read_text() == before['nova/api-paste.ini']
    node.clean()
    assert AVAILABLE not in node.nova_conf.read_text()


@pytest.mark.row('F92')
def test_clean_leaves_novas_files_byte_for_byte(node):
    before = node.nova_conf.with_name('nova.conf.before').read_bytes()
    node.clean()
    assert node.nova_conf.read_bytes() == before
    assert node.api_paste.read_bytes() == api_paste_ini().read_bytes()


def test_options_of_others_stay_in_nova_conf(new_node):
    node = new_node()
    node.nova_conf.write_text(USED)

    for _ in range(2):
        node.stack()
    conf = node.nova_options()
    assert conf.filter_scheduler.enabled_filters == [
        'ComputeFilter', 'SameHostFilter', *FILTERS,
    ]
    assert sorted(conf.filter_scheduler.available_filters) == [
        AVAILABLE, NOVAS,
        'nova.scheduler.filters.compute_filter.ComputeFilter',
    ]
    assert conf.filter_scheduler.weight_classes == [
        'nova.scheduler.weights.ram.RAMWeigher', WEIGHERS,
    ]
    assert conf.scheduler.max_placement_results == 500
    assert conf.oslo_messaging_notifications.driver == ['messagingv2']

    node.clean()
    left = node.nova_conf.read_text()
    assert left.startswith(USED)
    # The section that iniset itself has added.
    assert left[len(USED):].split() == ['[oslo_messaging_notifications]']


def test_clean_keeps_what_others_have_changed_since(node):
    text = node.nova_conf.read_text()
    text = text.replace('LifetimeFilter', 'LifetimeFilter,LaterFilter')
    text += '\n[later]\nplugin = here\n'
    node.nova_conf.write_text(text)
    before = node.nova_conf.with_name('nova.conf.before').read_text()
    node.clean()
    expected = before.replace('SameHostFilter', 'SameHostFilter,LaterFilter')
    expected += '\n[later]\nplugin = here\n'
    assert node.nova_conf.read_text() == expected


def test_clean_can_be_repeated(node):
    node.clean()
    before = node.files()
    node.clean()
    assert node.files() == before


def test_clean_on_a_node_that_was_never_stacked(new_node):
    node = new_node()
    node.nova_conf.write_text(USED)
    node.clean()
    assert node.nova_conf.read_text() == USED


def test_pipelines_that_it_does_not_know_are_told(new_node, tmp_path):
    strange = tmp_path / 'api-paste.ini'
    text = api_paste_ini().read_text()
    strange.write_text(text.replace('keystonecontext', 'context'))
    node = new_node(API_PASTE_INI=strange)
    with pytest.raises(AssertionError, match='has keystonecontext'):
        node.stack()


# The guard against a second addition, and the result without the guard.
GUARDS = {
    'available_filters': (
        '[[ " $available " != *" $BLAZAR_SCHED_AVAILABLE_FILTERS "* ]]',
        'true',
        lambda node: available_once(node.nova_options()),
    ),
    'enabled_filters': (
        '[[ ",${list// /}," != *",$value,"* ]]',
        'true',
        lambda node: enabled_once(node.nova_options()),
    ),
    'pipelines': (
        '/ $filter /! s/',
        's/',
        lambda node: passed_once(node.api_paste),
    ),
}


@pytest.mark.parametrize('name', GUARDS)
def test_without_its_guard_a_second_run_would_add_it_twice(
    name, new_node, tmp_path
):
    guard, without, is_once = GUARDS[name]
    shutil.copytree(REPOSITORY / 'devstack', tmp_path / 'devstack')
    path = tmp_path / 'devstack/lib/blazar_sched'
    text = path.read_text()
    assert text.count(guard) == 1
    path.write_text(text.replace(guard, without))
    node = new_node(plugin=tmp_path)
    node.stack()
    assert is_once(node)
    node.stack()
    assert not is_once(node)
