"""Models: adapters that give every kind of model one signature, batch in and scores out."""
