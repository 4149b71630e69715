# SPDX-License-Identifier: Apache-2.0
"""The booking of leases: how leases are made and changed."""
