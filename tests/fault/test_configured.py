# SPDX-License-Identifier: Apache-2.0
"""The options that deployment projects write for each of their services.

Each configuration has the option names, and values of the kind, that the
project's templates render for messaging, locks, databases and the validation
of tokens.
"""

import pytest
import sqlalchemy as sa

from tests.services import private

KOLLA = """
[oslo_messaging_rabbit]
heartbeat_in_pthread = false
amqp_durable_queues = true
rabbit_quorum_queue = true
rabbit_transient_quorum_queue = true
rabbit_stream_fanout = true
rabbit_qos_prefetch_count = 1
use_queue_manager = true
[oslo_messaging_notifications]
driver = noop
[oslo_concurrency]
lock_path = {folder}
[keystone_authtoken]
service_type = reservation
service_token_roles_required = true
memcache_security_strategy = ENCRYPT
memcache_secret_key = secret
memcached_servers = 127.0.0.1:11211
[database]
connection = {database}
connection_recycle_time = 10
max_pool_size = 1
max_retries = -1
"""
ANSIBLE = """
[DEFAULT]
use_journal = false
[oslo_messaging_rabbit]
ssl = false
heartbeat_in_pthread = false
rabbit_quorum_queue = true
rabbit_transient_quorum_queue = true
rabbit_stream_fanout = true
rabbit_qos_prefetch_count = 10
rabbit_quorum_delivery_limit = 0
rabbit_quorum_max_memory_bytes = 0
use_queue_manager = true
[oslo_messaging_notifications]
driver = messagingv2
[oslo_concurrency]
lock_path = {folder}
[keystone_authtoken]
service_type = reservation
service_token_roles = service
service_token_roles_required = true
insecure = false
[database]
connection = {database}?charset=utf8
max_overflow = 50
max_pool_size = 5
pool_timeout = 30
connection_recycle_time = 600
"""
DEVSTACK = """
[DEFAULT]
debug = true
logging_context_format_string = %(asctime)s %(levelname)s %(name)s %(message)s
[oslo_messaging_rabbit]
rabbit_quorum_queue = false
[oslo_messaging_notifications]
driver = messagingv2
[oslo_concurrency]
lock_path = {folder}
[database]
connection = {database}?charset=utf8
[keystone_authtoken]
interface = public
memcached_servers = localhost:11211
"""
DEBIAN = """
[DEFAULT]
use_syslog = false
[oslo_messaging_rabbit]
ssl = false
[oslo_messaging_notifications]
driver = messagingv2
[oslo_concurrency]
lock_path = {folder}
[database]
connection = {plain}
[keystone_authtoken]
auth_version = v3
token_cache_time = -1
"""


@pytest.fixture(scope='module')
def durable_bus():
    """A broker for queues that the other tests declare otherwise."""
    try:
        with private.RabbitMQ() as server:
            yield server.url
    except private.Missing as e:
        pytest.skip(str(e))


@pytest.mark.row('F130')
@pytest.mark.parametrize(
    ('text', 'engine', 'broker', 'number'),
    [
        # Its processes on one host share a folder of names of queues.
        pytest.param(KOLLA, 'mysql', 'durable_bus', 2, id='kolla-ansible'),
        pytest.param(
            ANSIBLE, 'mysql', 'durable_bus', 1, id='openstack-ansible'
        ),
        pytest.param(DEVSTACK, 'mysql', 'bus', 1, id='devstack'),
        pytest.param(DEBIAN, 'postgresql', 'bus', 1, id='debian'),
    ],
)
def test_processes_start_as_a_deployment_configures_them(
    request, broker, new_fleet, database_on, tmp_path, text, engine, number
):
    """Managers, APIs and workers of nova-scheduler work together."""
    bus = request.getfixturevalue(broker)
    url = sa.make_url(database_on(engine))
    plain = url.set(drivername=url.get_backend_name())
    path = tmp_path / 'deployment.conf'
    path.write_text(text.format(
        folder=tmp_path, database=url.render_as_string(False),
        plain=plain.render_as_string(False),
    ))
    fleet = new_fleet(
        url.render_as_string(False), bus, managers=number, apis=number,
        more=lambda process: [path],
    )
    with fleet.at_work():
        pass
