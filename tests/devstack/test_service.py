# SPDX-License-Identifier: Apache-2.0
"""The service as stack.sh configures, starts and removes it."""

import re
import subprocess
import urllib.parse

from keystoneauth1 import loading
import pytest

from tests.devstack.node import api_paste_ini
from tests.devstack.node import CONTROLLER
from tests.devstack.node import REPOSITORY

# The files that other services, and systemd, keep of blazar-sched.
KEPT = (
    'apache_sites', 'databases', 'endpoints', 'hosts', 'processes', 'services',
    'users',
)
CLIENTS = ('keystone', 'neutron', 'nova', 'placement')


def kept(node):
    return {name: node.lines(name) for name in KEPT}


def apache(node):
    """Return Apache's site file, '' without one."""
    path = node.state / 'apache/blazar-sched.conf'
    return path.read_text() if path.exists() else ''


def of_service(*services):
    """Return the enabled services of a node without the others."""
    enabled = CONTROLLER.split(',')
    return ','.join(each for each in enabled if each not in services)


def test_the_service_reads_its_configuration(stacked):
    conf = stacked.service_options()
    assert conf.database.connection == (
        'mysql+pymysql://root:secret@127.0.0.1/blazar_sched'
        '?charset=utf8mb4&plugin=dbcounter'
    )
    assert conf.transport_url.startswith('rabbit://stackrabbit:')
    assert conf.oslo_messaging_notifications.driver == ['messagingv2']
    assert conf.api.auth_strategy == 'keystone'
    assert (conf.api.host, conf.api.port) == ('0.0.0.0', 1234)
    assert conf.debug


@pytest.mark.parametrize('group', CLIENTS)
def test_clients_of_the_service_have_credentials(stacked, group):
    conf = stacked.service_options()
    auth = loading.load_auth_from_conf_options(conf, group)
    session = loading.load_session_from_conf_options(conf, group, auth=auth)
    # This raises for options that exclude each other.
    adapter = loading.load_adapter_from_conf_options(
        conf, group, session=session
    )
    assert adapter.region_name == 'RegionOne'
    assert auth._username == 'blazar'


def test_without_neutron_it_has_none_for_it(new_node):
    node = new_node(ENABLED_SERVICES=of_service('neutron'))
    node.stack()
    assert node.service_options().neutron.auth_type is None


@pytest.mark.row('F92')
def test_users_find_it(stacked):
    assert stacked.lines('users') == ['blazar admin']
    assert stacked.lines('services') == ['reservation blazar']
    assert stacked.lines('endpoints') == [
        'reservation-RegionOne reservation RegionOne '
        'http://127.0.0.1/reservation/v1'
    ]


@pytest.mark.row('F92')
def test_processes_are_started_and_waited_for(stacked):
    conf = ['--config-file', str(stacked.conf)]
    program = str(stacked.state / 'bin/blazar-sched')
    assert stacked.commands() == {
        'blazar-sched-manager': [program, 'manager', *conf],
        'blazar-sched-api': [program, 'api', *conf],
    }
    [waiting] = [
        call for call in stacked.lines('calls') if 'test_with_retry' in call
    ]
    assert 'http://127.0.0.1/reservation/healthcheck ' in waiting


@pytest.mark.parametrize('database', ['mysql', 'postgresql'])
def test_package_is_installed_with_the_driver_of_the_database(
    new_node, database
):
    node = new_node(ENABLED_SERVICES=of_service('mysql') + f',{database}')
    node.stack()
    installed, own_client, client = node.lines('calls')[:3]
    assert installed.endswith(f'{REPOSITORY} -e {database}')
    assert own_client == f'setup_package {REPOSITORY}/client -e'
    assert client == 'pip_install python-blazarclient'


def test_behind_the_tls_proxy(new_node):
    node = new_node(ENABLED_SERVICES=f'{CONTROLLER},tls-proxy')
    node.stack()
    [endpoint] = node.lines('endpoints')
    url = urllib.parse.urlsplit(endpoint.split()[-1])
    assert (url.scheme, url.port) == ('https', None)
    assert url.path == '/reservation/v1'
    inner = node.service_options().api.port
    assert inner != 1234
    assert f'"http://127.0.0.1:{inner}"' in apache(node)
    assert (
        f'start_tls_proxy blazar-sched * 1234 127.0.0.1 {inner}'
        in node.lines('calls')
    )


def test_api_is_behind_apache_as_all_services_are(node):
    """The same holds after a second run, and not after the removal."""
    node.stack()
    assert node.lines('apache_sites') == ['blazar-sched']
    assert {'headers', 'proxy', 'proxy_http'} <= set(
        node.lines('apache_modules')
    )
    assert apache(node).splitlines() == [
        '<Location "/reservation">',
        '    RequestHeader set X-Forwarded-Prefix "/reservation"',
        '</Location>',
        'ProxyPass "/reservation" "http://127.0.0.1:1234" retry=0 acquire=1',
    ]
    assert 'enable_proxy_headers_parsing = True\n' in node.conf.read_text()
    node.unstack()
    assert node.lines('apache_sites') == []
    assert apache(node) == ''


PANEL = 'opt/stack/horizon/openstack_dashboard/local/enabled/_90_panelgroup.py'


def test_horizon_gets_its_panels(new_node):
    node = new_node(ENABLED_SERVICES=f'{CONTROLLER},horizon')
    for _ in range(2):
        node.stack()
    panel = node.state / PANEL
    assert panel.is_symlink() and panel.exists()
    assert not panel.with_name('__init__.py').exists()
    calls = node.lines('calls')
    dashboard = f'{node.state}/opt/stack/blazar-dashboard'
    assert (
        'git_clone https://opendev.org/openstack/blazar-dashboard.git '
        f'{dashboard} master'
    ) in calls
    assert f'setup_develop {dashboard}' in calls
    node.clean()
    assert not panel.is_symlink()


def test_without_horizon_there_is_no_dashboard(stacked):
    assert not [c for c in stacked.lines('calls') if 'dashboard' in c]


def test_the_client_may_come_from_git(new_node):
    node = new_node(LIBS_FROM_GIT='python-novaclient,python-blazarclient')
    node.stack()
    calls = node.lines('calls')
    assert 'setup_dev_lib python-blazarclient' in calls
    assert 'pip_install python-blazarclient' not in calls


def test_beside_blazar_it_refuses(new_node):
    node = new_node(DEVSTACK_PLUGINS=',blazar,blazar-sched')
    with pytest.raises(AssertionError, match='either blazar or blazar-sched'):
        node.stack()
    assert not any(kept(node).values())
    assert node.lines('calls') == []


def test_the_lines_that_enable_the_plugin_name_its_branch():
    """DevStack uses the branch master if the line names none."""
    found = []
    for page in (
        'devstack/README.md', 'devstack/local.conf.sample',
        'doc/source/admin/devstack.rst',
    ):
        text = (REPOSITORY / page).read_text()
        [line] = re.findall(r'enable_plugin blazar-sched <.*?>[^`\n]*', text)
        done = subprocess.run(
            [
                'bash', '-c',
                'enable_plugin() { echo "$1 ${3:-master}"; }; '
                + re.sub('<.*>', 'URL', line),
            ],
            capture_output=True, text=True, check=True,
        )
        found.append(done.stdout.split())
    assert found == [['blazar-sched', 'main']] * 3


def test_the_branch_is_there():
    known = subprocess.run(
        ['git', 'for-each-ref', '--format=%(refname)'], cwd=REPOSITORY,
        capture_output=True, text=True,
    )
    names = {name.rpartition('/')[2] for name in known.stdout.split()}
    if not names:
        pytest.skip('this is no clone with branches')
    assert 'main' in names


def test_on_ipv6(new_node):
    node = new_node(SERVICE_LISTEN_ADDRESS='[::]')
    node.stack()
    assert node.service_options().api.host == '::'


def test_tempest_knows_that_it_is_there(node):
    tempest = node.etc / 'tempest.conf'
    assert '[service_available]\nblazar = True\n' in tempest.read_text()
    node.clean()
    assert 'blazar' not in tempest.read_text()


def test_hosts_are_registered_if_that_is_wanted(new_node):
    left = new_node('left')
    registered = new_node('registered', BLAZAR_SCHED_REGISTER_HOSTS='True')
    for node in (left, registered):
        for _ in range(2):
            node.stack()
    assert left.lines('hosts') == []
    assert registered.lines('hosts') == ['compute-1', 'compute-2']


def test_a_second_stack_leaves_the_same_objects(new_node):
    node = new_node(BLAZAR_SCHED_REGISTER_HOSTS='True')
    node.stack()
    before = kept(node)
    node.stack()
    assert kept(node) == before


@pytest.mark.row('F92')
def test_unstack_has_everybody_forget_it(node):
    (node.state / 'queues').write_text('conductor\nblazar-sched\n')
    node.unstack()
    assert not any(kept(node).values())
    assert node.lines('queues') == ['conductor']
    assert node.lines('warnings') == []


def test_unstack_leaves_other_regions_alone(node):
    other = 'reservation-Two reservation Two http://127.0.0.2:1234/v1'
    with (node.state / 'endpoints').open('a') as file:
        file.write(other + '\n')
    node.unstack()
    assert node.lines('endpoints') == [other]
    assert node.lines('services') and node.lines('users')


def test_unstack_goes_on_without_keystone_and_database(node):
    (node.state / 'up').unlink()
    node.unstack()
    assert node.lines('processes') == []
    assert len(node.lines('warnings')) == 2


@pytest.mark.row('F92')
def test_clean_removes_its_configuration(node):
    node.clean()
    assert not any(kept(node).values())
    assert not node.conf.parent.exists()


def test_on_a_node_with_a_scheduler_alone(new_node):
    node = new_node(
        ENABLED_SERVICES='n-sch',
        DISABLED_SERVICES='blazar-sched-api,blazar-sched-manager',
    )
    node.stack()
    assert not node.conf.exists()
    assert not any(kept(node).values())
    assert node.lines('calls') == [
        f'setup_package -bindep=compile {REPOSITORY} -e '
    ]
    enabled = node.nova_options().filter_scheduler.enabled_filters
    assert 'ReservationFilter' in enabled
    assert node.api_paste.read_text() == api_paste_ini().read_text()
    node.clean()
    assert not node.conf.parent.exists()


def test_on_a_node_with_computes_alone(new_node):
    node = new_node(
        ENABLED_SERVICES='n-cpu',
        DISABLED_SERVICES='blazar-sched-api,blazar-sched-manager',
    )
    node.stack()
    assert node.lines('calls') == []
    assert not any(kept(node).values())
    conf = node.nova_options()
    assert 'ReservationFilter' not in conf.filter_scheduler.enabled_filters
    assert conf.notifications.notification_format == 'both'


def test_on_a_node_without_nova(new_node):
    node = new_node(ENABLED_SERVICES='mysql,rabbit,key')
    node.stack()
    assert not node.nova_conf.exists()
    assert set(node.commands()) == {'blazar-sched-api', 'blazar-sched-manager'}
    assert node.lines('databases') == ['blazar_sched']


def test_another_manager_leaves_the_database_as_it_is(new_node):
    """The node with the database has created it."""
    node = new_node(
        ENABLED_SERVICES='n-cpu', DISABLED_SERVICES='blazar-sched-api'
    )
    node.stack()
    (node.state / 'databases').write_text('blazar_sched\n')
    node.unstack()
    assert not [c for c in node.lines('calls') if 'recreate' in c]
    assert node.lines('databases') == ['blazar_sched']
    assert node.lines('users') == []
