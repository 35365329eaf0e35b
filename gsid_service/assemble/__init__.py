"""From entities, facts, intents and a baseline to the graph that the model scores."""
