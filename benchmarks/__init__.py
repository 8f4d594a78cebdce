"""What a pause costs: Sayso beside bare ADK and beside ADK's own A2A server, measured in one run on one machine."""
