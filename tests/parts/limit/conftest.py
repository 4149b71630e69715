# SPDX-License-Identifier: Apache-2.0
"""A cloud whose API has hosts to reserve."""

from tests.functional.api.conftest import api  # noqa: F401
