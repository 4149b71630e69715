# SPDX-License-Identifier: Apache-2.0
"""The migrations, one per file; each names the migration before it."""
