# SPDX-License-Identifier: Apache-2.0
"""The API in front of a manager without faults."""

from tests.unit.api.conftest import *  # noqa: F401, F403
