"""The doors of an agent's process: what clients speak to, and how the process is watched."""
