"""What runs a turn of an agent. `api.py` is the seam; `adk/` is the engine that there is."""
