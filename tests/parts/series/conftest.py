# SPDX-License-Identifier: Apache-2.0
"""The API in front of a manager with series."""

from tests.functional.api.conftest import api  # noqa: F401
