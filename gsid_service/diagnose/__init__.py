"""From a network as it is observed to what is wrong in it, with the proof; here or apart."""
