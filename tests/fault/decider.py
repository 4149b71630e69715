# SPDX-License-Identifier: Apache-2.0
"""A nova-scheduler that tells which hosts the filters let servers in on.

``python -m tests.fault.decider CONFIG FILE HOST...``: each decision that
differs from the decision before is a line of JSON in FILE: the revision of the
replica, whether it is stale, the hosts for a server without an end, and the
hosts for a server of ten minutes.
"""

import os

# Nova reads the variable when it is imported.
os.environ.setdefault('OS_NOVA_DISABLE_EVENTLET_PATCHING', '1')

import json  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
import uuid  # noqa: E402

from nova import objects  # noqa: E402
from nova.scheduler import filters  # noqa: E402

from blazar_sched.filters import lifetime_filter  # noqa: E402
from blazar_sched.filters import reservation_filter  # noqa: E402
from blazar_sched.worker import process  # noqa: E402
from tests.fault import placer  # noqa: E402

PAUSE = 0.1


def decide(chain, hosts, lifetime):
    spec = placer.spec_of(str(uuid.uuid4()), 1, lifetime)
    states = placer.host_states({host: {} for host in hosts})
    passing = filters.HostFilterHandler().get_filtered_objects(
        chain, states, spec
    )
    return sorted(state.host for state in passing or [])


def main(config, file, *hosts):
    objects.register_all()
    process.CONF([], project='nova', default_config_files=[config])
    process.prepare()
    chain = [
        reservation_filter.ReservationFilter(),
        lifetime_filter.LifetimeFilter(),
    ]
    told = None
    with open(file, 'a') as lines:
        while True:
            unbounded = decide(chain, hosts, '')
            short = decide(chain, hosts, '600s')
            replica, stale = process.current()
            said = {
                'revision': replica and replica.revision, 'stale': stale,
                'unbounded': unbounded, 'short': short,
            }
            if said != told:
                lines.write(json.dumps(said) + '\n')
                lines.flush()
                told = said
            time.sleep(PAUSE)


if __name__ == '__main__':
    main(*sys.argv[1:])
