"""The engine on Google's Agent Development Kit (ADK)."""
