"""What runs in an agent's process: the engine, the gate in front of its tools, and the doors for clients."""
