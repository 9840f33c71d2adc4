"""What every package may use: errors, units, files. Knows no scenario and no run."""
