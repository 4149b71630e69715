# SPDX-License-Identifier: Apache-2.0
"""What the tests of offers over REST need."""

from tests.functional.api.conftest import api  # noqa: F401
