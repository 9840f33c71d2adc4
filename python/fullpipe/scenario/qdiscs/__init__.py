"""Queue disciplines: the options of each, and a registry of all."""
