"""The A2A door: JSON-RPC of both protocol generations (0.3 and 1.0) on one path."""
