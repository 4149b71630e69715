# SPDX-License-Identifier: Apache-2.0
"""Fork like nova-scheduler's master, and report the threads of each process.

test_process.py runs this module in a process of its own. Each process has a
bus in its own memory, so each worker starts the manager's end point itself.
"""

import os
import sys
import threading
import time

import oslo_messaging

from blazar_sched.replica import wire
from blazar_sched.worker import process

HOST = {
    'uuid': 'h1', 'id': '1', 'hypervisor_hostname': 'h1', 'inventory': {},
    'projects': [], 'traits': [],
}


class EndPoint:
    target = oslo_messaging.Target(version='1.0')

    def changes(self, ctxt, since, limit):
        return wire.changes_page('ledger', since, since, [], since)

    def snapshot(self, ctxt, after, limit):
        return wire.snapshot_page(
            'ledger', 7, after, [('host', 'h1', HOST)], None
        )


def pullers():
    return [
        t for t in threading.enumerate() if t.name == 'blazar-sched-puller'
    ]


def serve():
    transport = oslo_messaging.get_rpc_transport(process.CONF, url='fake:/')
    target = oslo_messaging.Target(
        exchange=wire.EXCHANGE, topic=wire.TOPIC, server='me'
    )
    oslo_messaging.get_rpc_server(transport, target, [EndPoint()]).start()


def report(who):
    alive = len(pullers())
    serve()
    deadline = time.monotonic() + 20
    while process.current()[1] and time.monotonic() < deadline:
        time.sleep(0.01)
    replica, stale = process.current()
    hosts = 'stale' if stale else ', '.join(replica.hosts)
    print(f'{who}: {alive} puller, hosts [{hosts}]', flush=True)


def fork(work):
    pid = os.fork()
    if pid == 0:
        work()
        # A worker that gets SIGTERM ends in this way, without cleanup.
        os._exit(0)
    os.waitpid(pid, 0)


def main():
    process.CONF([], default_config_files=[])
    for option, value in (
        ('transport_url', 'fake:/'),
        ('poll_interval', 0.01),
        ('snapshot_path', ''),
    ):
        process.CONF.set_override(option, value, 'blazar_sched')
    process.prepare()
    print(f'master: {"a" if pullers() else "no"} puller', flush=True)
    fork(lambda: report('worker'))
    with process._lock:
        # Another thread might hold it.
        fork(lambda: report('worker of a busy master'))
    fork(lambda: report('worker'))
    print(f'master: {"a" if pullers() else "no"} puller', flush=True)


if __name__ == '__main__':
    sys.exit(main())
