# SPDX-License-Identifier: Apache-2.0
"""Products: what the operator publishes for reservations."""
