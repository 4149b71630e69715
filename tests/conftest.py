# SPDX-License-Identifier: Apache-2.0
"""Nova runs on native threads in these tests.

It refuses to if anything has imported eventlet before, and oslo.messaging
does wherever eventlet is installed. So this comes before any test module.
"""

import importlib.util
import os

import pytest

from tests import serving

os.environ.setdefault('OS_NOVA_DISABLE_EVENTLET_PATCHING', '1')

if importlib.util.find_spec('nova') is not None:
    import nova.tests.functional  # noqa: F401


@pytest.fixture
def port():
    return serving.free_port()
