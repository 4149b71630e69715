# SPDX-License-Identifier: Apache-2.0
"""What the tests of killed managers and of announcements need."""

from tests.fault.conftest import cloud  # noqa: F401
from tests.fault.conftest import database_on  # noqa: F401
from tests.fault.conftest import processes  # noqa: F401
from tests.functional.manager.test_before_end import ask  # noqa: F401
