"""The REST door: one chat resource, runs and pauses, JSON or a stream of events."""
