# SPDX-License-Identifier: Apache-2.0
"""nova-compute with a fake driver that uploads images.

Nova's own fake driver leaves an image SAVING for ever. This module is run by
its path, in the environment of the cloud's services: see `compute`.
"""

import io
import sys

# This import is first, because it makes Nova patch the standard library.
from nova.cmd import compute
from nova.image import glance
from nova.virt import fake

# The image of a server that has none.
DISK = bytes(512)

_snapshot = fake.FakeDriver.snapshot


def snapshot(self, context, instance, image_id, update_task_state):
    """Upload an image of a server, as a driver with a disk does."""
    _snapshot(self, context, instance, image_id, update_task_state)
    glance.API().update(
        context, image_id, {'disk_format': 'raw', 'container_format': 'bare'},
        data=io.BytesIO(DISK),
    )


if __name__ == '__main__':
    fake.FakeDriver.snapshot = snapshot
    sys.exit(compute.main())
