"""The model an agent thinks with: one wrapper for time-outs, retries and errors around every provider."""
