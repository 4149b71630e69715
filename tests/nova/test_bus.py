# SPDX-License-Identifier: Apache-2.0
"""The bus in memory, which Nova and the worker of nova-scheduler share."""

from nova import conf as nova_conf
from oslo_config import cfg
import oslo_messaging
from oslo_messaging._drivers import impl_fake


def test_another_transport_drops_no_message_of_nova(lab):
    """A call that waits in a queue is answered, whatever else ends."""
    manager = impl_fake.FakeExchangeManager('')
    exchange = manager.get_exchange(nova_conf.CONF.control_exchange)
    exchange.deliver_message('a topic without a server', {}, 'a message')
    another = oslo_messaging.get_rpc_transport(cfg.ConfigOpts(), 'fake://')
    another.cleanup()

    found = manager.get_exchange(nova_conf.CONF.control_exchange)
    target = oslo_messaging.Target(topic='a topic without a server')
    assert found.poll(target, None)[1] == 'a message'
