# SPDX-License-Identifier: Apache-2.0
"""The events of leases: when an event is due, and who executes it."""
