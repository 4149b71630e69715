# SPDX-License-Identifier: Apache-2.0
"""A cloud whose servers are relocated."""

from tests.functional.manager.test_relocation_shown import site  # noqa: F401
