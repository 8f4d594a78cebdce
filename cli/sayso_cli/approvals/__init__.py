"""`sayso approvals`: what is pending, and deciding it, straight on the ledger."""
