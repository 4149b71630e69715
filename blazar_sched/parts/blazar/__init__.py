# SPDX-License-Identifier: Apache-2.0
"""The import of leases from Blazar 18, and the way back to Blazar."""
