"""The AG-UI door: runs, interrupts and answers to them, in the protocol's own types."""
