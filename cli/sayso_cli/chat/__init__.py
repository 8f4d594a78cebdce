"""`sayso chat`: a conversation with an agent in the terminal, pauses included."""
