"""What may run: the decision about a call, the question to a person, and what a person has allowed."""
